#!/bin/bash
# report_browser.t: pages of hpc-train report in Chromium: no error, no scrolling sideways at 400 pixels, light and dark.
# shellcheck disable=SC2034,SC2154

# shellcheck source=tests/build/lib.sh
. "$(dirname "$0")/../build/lib.sh"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
[ -n "$browser" ] || skip_all "there is no chromium"
command -v python3 >/dev/null || skip_all "there is no python3"
work=$(mktemp -d /tmp/hpc-train-browser.XXXXXX)
at_exit "rm -rf '$work'"
cd "$work" || exit
lib() { python3 "$top_srcdir/tests/results/report.py" "$@"; }
# chrome OPTION... URL
chrome() {
    HOME=$work limit 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/profile" "$@" 2>"$work/log"
}
lib make one workers=4 nodes=2 slow=2 "model=$(printf 'a-very-long-name-%.0s' {1..12})"
lib make many workers=512 nodes=64
for n in 1 2 4 32; do lib make w$n workers=$n epochs=8; done
"$top_builddir/hpc-train" report one -o one.html 2>/dev/null
"$top_builddir/hpc-train" report many -o many.html
"$top_builddir/hpc-train" report w1 w2 w4 w32 -o several.html
# measured NAME: a copy that may run scripts and tells its widths and background to the frame of 400 pixels that it is in: a
# window is not as narrow.
measured() {
    local script='document.querySelectorAll("details").forEach(d => d.open = true);
        parent.postMessage([innerWidth, document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor].join(" "), "*")'
    sed -e '/Content-Security-Policy/d' -e '/^<\/body>$/d' "$1.html" >"$1.measured.html"
    echo "<script>$script</script></body>" >>"$1.measured.html"
    cat >"$1.frame.html" <<END
<!DOCTYPE html><body style="margin:0"><script>addEventListener("message", e => document.body.dataset.seen = e.data)</script>
<iframe src="$1.measured.html" style="width:400px;height:900px;border:0"></iframe></body>
END
}
seen() { # NAME OPTION...
    chrome "${@:2}" --virtual-time-budget=5000 --dump-dom "file://$work/$1.frame.html" | sed -nE 's/.* data-seen="([^"]*)".*/\1/p'
}
echo '<body><script>console.error("x")</script>' >wrong.html
chrome --enable-logging=stderr --dump-dom "file://$work/wrong.html" >/dev/null
[[ $(<log) == *CONSOLE* ]] || skip_all "this Chromium's log does not have the console's errors"
for name in one many several; do
    measured $name
    read -r inner scroll background <<<"$(seen $name)"
    is "$inner $scroll" "400 400" "$name: no wider than 400 pixels"
    unlike "$(chrome --enable-logging=stderr --dump-dom "file://$work/$name.html" >/dev/null; grep CONSOLE log)" . "$name: the console says nothing"
done
read -r inner scroll dark <<<"$(seen one --blink-settings=preferredColorScheme=0)"
ok "$([ -n "$dark" ] && [ "$dark" != "$background" ]; echo $?)" "dark where that is preferred: $dark, else $background"
is "$scroll" 400 "and no wider"
chrome --screenshot="$work/shot.png" --window-size=1100,1200 "file://$work/one.html"
ok "$([ -s shot.png ]; echo $?)" "it can be drawn"
done_testing
