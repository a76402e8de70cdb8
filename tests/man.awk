# man.awk PAGE...: lines of man pages with text behind a macro that joins its arguments: `.IR NAME . A folder of` is shown as
# "NAME.Afolderof". It prints a word that follows a word, or a lone point, comma, semicolon, colon or bracket. Placeholders
# (capitals) and single letters may be joined on purpose. Exit status 1 if it has printed a line.

# The arguments of a macro go into word[] (without quotes), and their number is returned.
function split_words(line,    n, i, c, quoted, any) {
    n = 0
    word[1] = ""
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (c == "\"")
            quoted = !quoted
        else if (c == " " && !quoted) {
            n += any
            any = 0
            word[n + 1] = ""
            continue
        } else
            word[n + 1] = word[n + 1] c
        any = 1
    }
    return n + any
}

/^\.[BRI][BRI] / {
    n = split_words(substr($0, 5))
    for (i = 1; i < n; i++) {
        if (word[i] ~ /([[:alnum:]]|^[.,;:)]+)$/ && word[i + 1] ~ /^[[:alpha:]]+[[:lower:]]/) {
            print FILENAME ":" FNR ": text behind a macro is shown without spaces: " $0
            found = 1
            next
        }
    }
}
END { exit found }
