#!/bin/sh
# server.sh start|stop|kill|freeze|thaw|wait|replace NAME, in the folder that prepare.sh made.
#
#   start    starts the server NAME, whose log is NAME.log
#   stop     lets it give away what it leads, and ends it
#   kill     ends it like a lost machine
#   freeze   cuts it off: its connections stay open, and nothing answers; thaw ends that
#   wait     waits until it is healthy, and stays so for some looks: one that was cut off finds out
#            only then. It knows the leader of the cluster, and its copies are no longer behind. Fails
#            after a minute, or at once if a copy is damaged, and says why
#   replace  gives it an empty store, which the others fill
set -eu
. ./passwords.env
what=${1:?"say what to do"}
name=${2:?"say which server"}
pid() { cat "$name.pid"; }
gone() { while kill -0 "$(pid)" 2>/dev/null; do sleep 0.1; done; rm -f "$name.pid"; }
# What a server answers on its monitoring port: ask NAME PATH.
ask() { curl -sS -m 2 "http://$(sed -n 's/^http: "\(.*\)"$/\1/p' "$1.conf")/$2" 2>&1 || true; }
# Whom a server takes for the leader of the cluster.
leader() { ask "$1" jsz | sed -n 's/.*"leader": "\(.*\)".*/\1/p'; }
# A server whose leader does not know that it leads has not heard of the present one.
follows() { led=$(leader "$name") && [ -n "$led" ] && [ "$(leader "$led")" = "$led" ]; }
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
  looks=0
  healthy=0
  while [ $healthy -lt 5 ]; do
    health=$(ask "$name" healthz)
    case $health in
    *'"status":"ok"'*) if follows; then healthy=$((healthy + 1)); else healthy=0; fi ;;
    *) healthy=0 ;;
    esac
    looks=$((looks + 1))
    case $health in *"stream write error"*) looks=1000 ;; esac
    if [ $looks -gt 120 ]; then
      echo "$name is not healthy: $health" >&2
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
