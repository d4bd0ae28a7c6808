#!/usr/bin/env bash
# A controller in shell: it asks Escapade what to do, does it, and tells what came of it.
#
#     examples/controller.sh STEPS DIR
#
# The plant is three states in a ring.  Action 1 moves on, earns one more than the number
# of the state and costs 1; action 0 stays, and earns and costs nothing.
set -euo pipefail
steps=${1:-20} directory=${2:-plant.journal}
coproc AGENT { "${ESCAPADE:-escapade}" serve "$directory" --stdio --env three-state-loop; }

say() { printf "$@" >&"${AGENT[1]}"; IFS= read -r answer <&"${AGENT[0]}"; }
number() { sed -E "s/.*\"$1\": ([0-9]+).*/\1/" <<<"$answer"; }

IFS= read -r answer <&"${AGENT[0]}" # where it stands: no state before the first step
state=$(number state)
[[ $state =~ ^[0-9]+$ ]] || state=0
for ((t = 0; t < steps; t++)); do
  say '{"do": "ask", "state": %d}\n' "$state"
  decision=$(number decision) action=$(number action)
  reward=$((action * (state + 1))) cost=$action
  state=$(((state + action) % 3))
  say '{"do": "tell", "decision": %d, "reward": %d, "cost": %d, "next_state": %d}\n' \
    "$decision" "$reward" "$cost" "$state"
done
say '{"do": "close"}\n'
echo "$(number steps) steps; the promise stands at ${answer#*promise\": }"
