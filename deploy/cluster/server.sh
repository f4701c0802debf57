#!/bin/sh
# server.sh start|stop|kill|freeze|thaw|wait|replace NAME, in the folder that prepare.sh made.
#
#   start    starts the server NAME, whose log is NAME.log
#   stop     lets it give away what it leads, and ends it
#   kill     ends it like a lost machine
#   freeze   cuts it off: its connections stay open, and nothing answers; thaw ends that
#   wait     waits until it is healthy: it knows the cluster, and its copies are no longer behind. Fails
#            after a minute, and says why
#   replace  gives it an empty store, which the others fill
set -eu
. ./passwords.env
what=${1:?"say what to do"}
name=${2:?"say which server"}
pid() { cat "$name.pid"; }
gone() { while kill -0 "$(pid)" 2>/dev/null; do sleep 0.1; done; rm -f "$name.pid"; }
case $what in
start)
  nats-server -c "$name.conf" -P "$PWD/$name.pid" >> "$name.log" 2>&1 &
  ;;
stop)
  kill -USR2 "$(pid)"
  gone
  ;;
kill)
  kill -KILL "$(pid)"
  gone
  ;;
freeze) kill -STOP "$(pid)" ;;
thaw) kill -CONT "$(pid)" ;;
wait)
  address=$(sed -n 's/^http: "\(.*\)"$/\1/p' "$name.conf")
  tries=0
  until curl -fsS -m 2 "http://$address/healthz" > /dev/null 2>&1; do
    tries=$((tries + 1))
    if [ $tries -gt 120 ]; then
      echo "$name is not healthy: $(curl -sS -m 2 "http://$address/healthz")" >&2
      exit 1
    fi
    sleep 0.5
  done
  ;;
replace)
  kill -KILL "$(pid)"
  gone
  rm -r "store/$name"
  "$0" start "$name"
  "$0" wait "$name"
  ;;
*)
  echo "unknown: $what" >&2
  exit 2
  ;;
esac
