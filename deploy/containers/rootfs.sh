#!/bin/sh
# Makes what the image has besides its base, in a folder. Run in a checkout after `npm ci`:
#   sh deploy/containers/rootfs.sh FOLDER [PACKAGE]
# PACKAGE is a folder that `npm run build` has made; without it, that is run.
set -eu
folder=$1
checkout=$(cd "$(dirname "$0")/../.." && pwd)
package=${2:-$checkout/dist}
[ $# -gt 1 ] || (cd "$checkout" && npm run --silent build)
mkdir -p "$folder/opt" "$folder/usr/local/bin" "$folder/var/lib/petrel" "$folder/run/petrel"
cp -R "$package" "$folder/opt/petrel"
cp "$checkout/deploy/containers/healthcheck.mjs" "$folder/opt/petrel/healthcheck.mjs"
# The image needs neither the pages nor what other deployments use.
rm -rf "$folder/opt/petrel/docs" "$folder/opt/petrel/deploy"
ln -s ../../../opt/petrel/cli/petrel.js "$folder/usr/local/bin/petrel"
