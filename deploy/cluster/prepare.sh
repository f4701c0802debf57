#!/bin/sh
# prepare.sh DIR: makes a folder for the three servers of a cluster: their configurations, the
# accounts of nats.conf, passwords, and certificates that last a year and are signed by an authority
# whose key is in DIR/tls/ca.key. Take that key away when all have their certificates.
set -eu
umask 077
here=$(cd "$(dirname "$0")" && pwd)
to=${1:?"say where to: prepare.sh DIR"}
mkdir -p "$to/tls" "$to/store"
cp "$here/a.conf" "$here/b.conf" "$here/c.conf" "$here/common.conf" "$here/server.sh" "$to"

# The accounts block, without the # of each line that is configuration, and without the prose.
sed -n '/^#accounts {$/,/^#}$/p' "$here/../../nats.conf" | grep -v '^# [^ ]' | sed 's/^#//' > "$to/accounts.conf"

cd "$to"
# openssl says much where it succeeds, and why where it does not.
ssl() { said=$(openssl "$@" 2>&1) || { echo "$said" >&2; exit 1; }; }
for user in $(grep -o 'PETREL_[A-Z_]*_PASSWORD' accounts.conf | sort -u); do
  echo "export $user='\"$(openssl rand -hex 24)\"'"
done > passwords.env

ssl req -x509 -newkey ed25519 -nodes -days 365 -subj "/CN=petrel cluster" \
  -addext basicConstraints=critical,CA:true -keyout tls/ca.key -out tls/ca.crt
for name in a b c; do
  address=$(sed -n 's/^listen: "\(.*\):[0-9]*"$/\1/p' "$name.conf" | tr -d '[]')
  ssl req -newkey ed25519 -nodes -subj "/CN=$name" -keyout "tls/$name.key" -out "tls/$name.csr"
  case $address in
  "")
    echo "$name.conf has no line such as listen: \"10.0.0.1:4222\"" >&2
    exit 1
    ;;
  *:*) names="DNS:$name,IP:$address,DNS:localhost" ;;
  *[!0-9.]*) names="DNS:$name,DNS:$address" ;;
  # Clients on Node look for the name localhost where they are given an address.
  *) names="DNS:$name,IP:$address,DNS:localhost" ;;
  esac
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$names" > "tls/$name.ext"
  ssl x509 -req -in "tls/$name.csr" -CA tls/ca.crt -CAkey tls/ca.key -CAcreateserial \
    -days 365 -extfile "tls/$name.ext" -out "tls/$name.crt"
  rm "tls/$name.csr" "tls/$name.ext"
done

# What commands and workers connect with: of each role its own file.
servers=$(sed -n 's/^listen: "\(.*\)"$/\1/p' a.conf b.conf c.conf | paste -sd, -)
. ./passwords.env
login() { echo "tls://$1:$(echo "$2" | tr -d '"')@$servers"; }
for role in operator worker console ingest outbox backup acme; do
  password=$(eval "echo \"\$PETREL_$(echo $role | tr a-z A-Z)_PASSWORD\"")
  echo "export NATS_CA='$PWD/tls/ca.crt' NATS_URL='$(login "$role" "$password")'" > "$role.env"
done
echo "export NATS_ACCESS_URL='$(login access_operator "$PETREL_ACCESS_OPERATOR_PASSWORD")'" >> operator.env
echo "export NATS_ACCESS_URL='$(login access_console "$PETREL_ACCESS_CONSOLE_PASSWORD")'" >> console.env
echo "export NATS_ACCESS_URL='$(login access_backup "$PETREL_ACCESS_BACKUP_PASSWORD")'" >> backup.env
