#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One of the two ranks of `helm test`: measures, then gives its log to whoever connects to RESULT_PORT.
set -u
log=$RESULTS/log
railhead-perf all_reduce -b 8 -e "$MAX_BYTES" -f 8 -n "$ITERATIONS" -w 2 --check > "$log.part" 2>&1
echo "# exit: $?" >> "$log.part"
mv "$log.part" "$log"
cat "$log"
exec perl -MIO::Socket::IP -e '
  my $server = IO::Socket::IP->new(LocalPort => $ENV{RESULT_PORT}, Listen => 8, ReuseAddr => 1) or die "listen: $@\n";
  while (my $client = $server->accept) {
    open(my $file, "<", "$ENV{RESULTS}/log") or die "log: $!\n";
    print $client $_ while <$file>;
    close $client;
  }'
