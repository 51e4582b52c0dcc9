#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One of the two ranks of `helm test`: measures, then gives its log to clients at RESULT_PORT.
set -u
log=$RESULTS/log
railhead-perf all_reduce -b 8 -e "$MAX_BYTES" -f 8 -n "$ITERATIONS" -w 2 --check > "$log.part" 2>&1
echo "# exit: $?" >> "$log.part"
mv "$log.part" "$log"
cat "$log"
# What a client asks for is its first line: "log", or "end", after which no log is given any more.
perl -MIO::Socket::IP -e '
  # For clients of IPv6 and of IPv4; without IPv6 on the node, of IPv4.
  my %at = (LocalPort => $ENV{RESULT_PORT}, Listen => 8, ReuseAddr => 1);
  my $server = IO::Socket::IP->new(LocalHost => "::", V6Only => 0, %at) || IO::Socket::IP->new(%at)
    or die "listen: $@\n";
  $SIG{ALRM} = sub { die "silent\n" };
  while (my $client = $server->accept) {
    my $line = eval { alarm 5; my $read = <$client>; alarm 0; $read } // "";
    alarm 0;
    exit if $line eq "end\n";
    next if $line ne "log\n";
    open(my $file, "<", "$ENV{RESULTS}/log") or die "log: $!\n";
    print $client $_ while <$file>;
    close $client;
  }' || exit 1
# A container that ended would be started again, and measure once more.
exec sleep infinity
