#!/usr/bin/env bash
# Records what a version of `tl` stores, exports and prints, for crates/cli/tests/it/compatibility.rs:
#
#   crates/cli/tests/compatibility/record.sh target/debug/tl crates/cli/tests/compatibility/0.1.0
#
# Run it once, with the program of a release. A recording is never made again: a later version that
# cannot reproduce it is not compatible.
set -euo pipefail
tl_binary=$(realpath "$1")
out=$2
tests=$(realpath "$(dirname "$0")/../../..")
[[ ! -e $out ]] || { echo "$out exists already" >&2; exit 1; }
mkdir -p "$out"/{store,sources,exports,output}
out=$(realpath "$out")

root=/tmp/throughline-recording
[[ ! -e $root ]] || { echo "$root exists already" >&2; exit 1; }
mkdir -p "$root"/{home,work}
trap 'rm -rf "$root"' EXIT
cd "$root/work"

tl() {
    env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$root" THROUGHLINE_HOME="$root/home" TZ=UTC \
        "$tl_binary" "$@"
}

# A project is recognized by its remote, whatever folder it is in.
git init --quiet .
git remote add origin https://example.org/shop/till.git

cat >"$root/home/config.toml" <<'TOML'
owner = "casey"
policy = "aiarmy"
trash_grace = "3650d"
TOML

# Messages, tool calls, thinking, usage, an attachment, a document, pins and decisions.
tl new --name planning --id planning-0001 --tag work --agent dev >/dev/null
tl append planning "Which port does Redis listen on in the staging cluster?" --external-id question-1
tl append planning --json <<'JSON'
{"role":"assistant","content":[{"type":"thinking","text":"Look at the compose file.","signature":"c2ln"},{"type":"text","text":"I will look at the compose file."},{"type":"tool_use","id":"call-1","name":"read_file","input":{"path":"deploy/compose.yml"}}],"model":"example/model-1","usage":{"input":120,"output":31,"cache_read":64}}
{"role":"tool","content":[{"type":"tool_result","tool_use_id":"call-1","content":"redis:\n  ports: [\"6390:6379\"]"}]}
{"role":"assistant","content":"Redis listens on port 6390 in staging; 6379 is only the port inside the container.","id":"answer-1","author":"model-1","at":"2026-01-05T10:00:00Z"}
JSON
printf '\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89' >dot.png
printf 'services:\n  redis:\n    ports: ["6390:6379"]\n' >compose.yml
tl append planning "Here is the file, and a picture of the dashboard." --attach compose.yml --attach dot.png
tl pin planning "Staging is called heron"
pin=$(tl pin planning "The old staging was called egret" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["seq"])')
tl unpin planning "$pin"
tl decide planning "Sessions are stored in PostgreSQL"
tl describe planning "Where the services of the till run"
tl tag planning infrastructure
tl untag planning work
tl context set planning brief '{"goal": "move staging", "open": ["dns", "certificates"]}'
tl append planning "émigré 日本語 🦆 naïve café: unusual text is found as well"

# Forks and the three kinds of merge; a conflict of each kind.
tl fork planning --at 4 --name fast-forward --key fork:fast >/dev/null
tl new --name trunk --id trunk-0001 >/dev/null
tl append trunk "The till prints receipts."
tl fork trunk --name branch-forward >/dev/null
tl append branch-forward "Receipts carry a QR code."
tl merge branch-forward
tl fork trunk --name branch-append >/dev/null
tl append branch-append "Receipts are also sent by mail."
tl append trunk "Receipts are printed twice for cards."
tl merge branch-append --append
tl fork trunk --at 2 --name branch-summary >/dev/null
tl append branch-summary "We tried thermal paper; it fades."
tl merge branch-summary --summary "Thermal paper was tried and fades."
tl append trunk "late, appended" --expect 1 --on-conflict rebase
tl append trunk "late, forked" --expect 1 --on-conflict fork

# A long session, compacted twice, one of them undone; a continuation; a rewind; a clear.
tl new --name long --id long-0001 --agent dev >/dev/null
for n in $(seq 1 14); do
    printf '{"role":"user","content":"Question %s: how does module %s in src/module_%s.rs handle rounding of amounts?"}\n' "$n" "$n" "$n"
    printf '{"role":"assistant","content":"Answer %s: src/module_%s.rs rounds half to even with scale %s. We decided to keep it. TODO: test %s."}\n' "$n" "$n" "$n" "$n"
done | tl append long --json >/dev/null
tl compact long --model offline >/dev/null
tl append long "And what about refunds?"
tl compact long --model offline --policy default --with keep="2 messages" >/dev/null
tl compact long --undo
tl continue long --name long-continued --model offline >/dev/null
tl append long-continued "Refunds are rounded like sales."
tl append long-continued "this will be taken back"
tl rewind long-continued --to 2
tl new --name cleared --id cleared-0001 >/dev/null
tl append cleared "before clearing"
tl clear cleared
tl append cleared "after clearing"

# A turn by the offline agent, an agent's session, archived, trashed and erased ones.
tl -p "which port has redis in staging?" >/dev/null
tl open --feature checkout --agent reviewer --task t7 --state in_review --json >/dev/null
tl new --name archived --id archived-0001 >/dev/null
tl append archived "an old conversation"
tl archive archived
tl new --name trashed --id trashed-0001 >/dev/null
tl append trashed "to be deleted"
tl delete trashed
tl new --name erased --id erased-0001 >/dev/null
tl append erased "the password was swordfish"
tl append erased "and nobody noticed"
tl erase erased 1 --reason "a password" --yes

# Memory: of the project, of the owner, for a file, replaced, forgotten and proposed facts.
tl memory add "The staging cluster is called heron"
tl memory add --owner-wide "Casey prefers tabs"
tl memory add --file src/module_3.rs "module_3 is generated"
tl memory add "The production port of Redis is 6400"
tl memory add "The production port of Redis is 6401"
tl memory add "This fact was wrong"
wrong=$(tl memory list --json | python3 -c 'import json,sys; d=json.load(sys.stdin); print([f for f in d["facts"] if "wrong" in f["text"]][0]["id"])')
tl memory forget "$wrong"

# Tokens, one revoked.
tl token create --user casey --label laptop --json >/dev/null
revoked=$(tl token create --user bot --role service --label chat-bot --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["id"])')
tl token revoke "$revoked"

# Imports, whose ledgers record how far each source was read.
fixtures=$tests/formats/tests/agents/fixtures
agents=(claude-code codex pi goose aider llm)
mkdir -p "$root"/sources/{aider,llm}
cp -r "$fixtures"/{claude-code,codex,pi,goose} "$root/sources/"
cp "$fixtures/aider.chat.history.md" "$root/sources/aider/.aider.chat.history.md"
run_sql() { python3 -c 'import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.executescript(sys.stdin.read()); c.close()' "$1"; }
(echo "PRAGMA page_size = 512;" && cat "$fixtures/llm.sql") | run_sql "$root/sources/llm/logs.db"
find "$root/sources" -type f -exec touch -d 2026-01-06T12:00:00Z {} +
for agent in "${agents[@]}"; do
    tl import --from "$agent" --path "$root/sources/$agent" --json >/dev/null
done
tl import "$tests/cli/tests/compatibility/lines.jsonl" --json >/dev/null

# The copy has no files beside the database that are only there while it is open.
tl search redis >/dev/null
cp -r "$root/home" "$root/recorded"
run_sql "$root/recorded/sessions.db" <<<"PRAGMA wal_checkpoint(TRUNCATE);"
rm -f "$root"/recorded/sessions.db-{wal,shm}
zstd -q -19 --rm "$root/recorded/sessions.db"
cp -r "$root/recorded/." "$out/store/"
cp -r "$root/sources/." "$out/sources/"

# What the commands print and export, outside of the project.
cd "$root"
while IFS= read -r line; do
    [[ -n $line ]] || continue
    name=${line%% *}
    eval "arguments=(${line#* })"
    tl "${arguments[@]}" --json >"$out/output/$name"
done <"$tests/cli/tests/compatibility/commands.txt"
while IFS= read -r line; do
    [[ -n $line ]] || continue
    name=${line%% *}
    eval "arguments=(${line#* })"
    tl "${arguments[@]}" --output "$out/exports/$name"
done <"$tests/cli/tests/compatibility/exports.txt"
zstd -q -19 --rm "$out/exports/all.jsonl"

# The same sources again, and then with something new at their end.
for agent in "${agents[@]}"; do
    tl import --from "$agent" --path "$root/sources/$agent" --json >"$out/output/import-unchanged-$agent.json"
done
for growth in "$tests"/cli/tests/compatibility/growth/*; do
    name=${growth##*/}
    source=$root/sources/${name/__//}
    case $name in
    *.sql) run_sql "${source%.sql}" <"$growth" ;;
    *) cat "$growth" >>"$source" ;;
    esac
done
for agent in "${agents[@]}"; do
    tl import --from "$agent" --path "$root/sources/$agent" --json >"$out/output/import-grown-$agent.json"
done
sed -i "s|$root/sources|[sources]|" "$out"/output/import-*.json
(cd "$out" && find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs -d '\n' sha256sum >SHA256SUMS)
