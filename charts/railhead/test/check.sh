#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The pod of `helm test` that says how the all-reduce went. It has no HCA, no token and no right: it asks the node
# agents' metrics pages whether there is an HCA at all, and the ranks for their logs.
# The last line begins with PASS, SKIP or FAIL; FAIL is exit status 1.
set -u

# fetch HOST PORT [REQUEST]: what is answered, within five seconds (ANSWER_SECONDS: others, in tests).
fetch() {
  # shellcheck disable=SC2016  # they are the inner shell's
  timeout "${ANSWER_SECONDS:-5}" bash -c 'exec 3<>"/dev/tcp/$0/$1" && printf "%s" "$2" >&3 && cat <&3' "$1" "$2" "${3:-}" 2>/dev/null
}

end() {
  printf '%s\n' "$*"
  case $1 in FAIL*) exit 1 ;; *) exit 0 ;; esac
}

# Whether there is anything to measure with. The agents count the HCAs of all resources: whether $RESOURCE is among
# those that a node offers, the ranks find out.
read -ra ranks <<< "$RANK_ADDRESSES"
mapfile -t agents < <(getent ahosts "$AGENT_ADDRESSES" | awk '{print $1}' | sort -u)
[ ${#agents[@]} != 0 ] || end "SKIP: no node runs the node agent, so no node offers $RESOURCE"
answered=0 healthy=0 all=0
for agent in "${agents[@]}"; do
  page=$(fetch "$agent" "$AGENT_PORT" $'GET /metrics HTTP/1.0\r\n\r\n')
  [ -n "$page" ] || continue
  answered=$((answered + 1))
  healthy=$((healthy + $(grep -c '^railhead_device_healthy{.*} 1$' <<< "$page")))
  all=$((all + $(grep -c '^railhead_device_healthy{' <<< "$page")))
done
[ $answered != 0 ] || end "FAIL: none of ${#agents[@]} node agents answers at port $AGENT_PORT: see their pods' logs"
echo "$answered node agents, $healthy healthy HCAs of $all"
[ $healthy != 0 ] || end "SKIP: no node offers $RESOURCE"
[ "$healthy" -ge "$((2 * HCAS))" ] || [ "$all" -lt "$((2 * HCAS))" ] ||
  end "FAIL: two ranks with $HCAS HCAs each need $((2 * HCAS)) healthy ones, and only $healthy of $all are: railhead doctor says why"
[ "$healthy" -ge "$((2 * HCAS))" ] ||
  end "SKIP: two ranks with $HCAS HCAs each need $((2 * HCAS)) healthy ones, and there are $healthy"

# The ranks may wait for a node, pull their image, and measure.
declare -A logs=()
deadline=$((SECONDS + TIMEOUT))
while [ ${#logs[@]} != 2 ] && [ $SECONDS -lt $deadline ]; do
  for rank in 0 1; do
    [ -z "${logs[$rank]:-}" ] || continue
    text=$(fetch "${ranks[$rank]}" "$RESULT_PORT" $'log\n')
    # All of it, or nothing.
    if grep -q '^# exit: ' <<< "$text"; then logs[$rank]=$text; fi
  done
  [ ${#logs[@]} = 2 ] || sleep 2
done
# So that no later test, whose ranks have the same names, reads these logs.
for rank in "${!logs[@]}"; do fetch "${ranks[$rank]}" "$RESULT_PORT" $'end\n' > /dev/null; done
for rank in "${!logs[@]}"; do printf '\n-- rank %s\n%s\n' "$rank" "${logs[$rank]}"; done
echo
[ ${#logs[@]} = 2 ] ||
  end "FAIL: only ${#logs[@]} of 2 ranks had a result within $TIMEOUT s. Perhaps no node offers enough of $RESOURCE, or other pods hold it: kubectl get nodes -o custom-columns='NODE:.metadata.name,OFFERED:.status.allocatable.${RESOURCE//./\\.}'; run the test again and look at the ranks meanwhile: kubectl -n $NAMESPACE describe pods -l app.kubernetes.io/component=test-rank"

# Of a line that is there twice, at the begin and at the end, the last one.
value() { sed -n "s/^# $1: //p" <<< "${logs[0]}" | tail -n 1; }
for rank in 0 1; do
  grep -qx '# exit: 0' <<< "${logs[$rank]}" || end "FAIL: rank $rank ended with an error: its log above says why"
done
[ "$(value transport)" = verbs ] || end "FAIL: the ranks used $(value transport) instead of RDMA: $(value degraded)"
[ "$(value degraded)" = no ] || end "FAIL: the ranks had less than they asked for: $(value degraded)"
[ "$(value verified)" = yes ] || end "FAIL: wrong values were received"

# busbw at the largest size is what a rank sends each second; the rails' bytes say which part of it each carried.
awk '
  $3 == "float" && $4 == "sum" { busbw = $7 }
  /^# rail / { gsub(":", "", $3); gsub(",", "", $4); rail[++n] = $3; device[n] = $4
               for (i = 1; i < NF; i++) if ($i == "sent") sent[n] = $(i + 1); all += sent[n] }
  END { printf "%-6s %-12s %s\n", "rail", "device", "GB/s"
        for (i = 1; i <= n; i++) printf "%-6s %-12s %.3f\n", rail[i], device[i], all ? busbw * sent[i] / all : 0 }
' <<< "${logs[0]}"
rails=$(grep -c '^# rail ' <<< "${logs[0]}")
[ "$rails" = "$HCAS" ] || end "FAIL: $rails rails carried data, not $HCAS"
end "PASS: two ranks agree on every value, over $rails rails of RDMA"
