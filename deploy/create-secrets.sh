#!/bin/sh
# Create the secrets of compose.yaml beside this file, except those that exist.
set -eu
folder="$(dirname "$0")/secrets"
mkdir -p "$folder"
# Nobody else on this machine enters the folder. The users inside the containers must read the files.
chmod 700 "$folder"
for name in postgres_password bunko_token; do
    if [ ! -s "$folder/$name" ]; then
        od -An -N24 -tx1 /dev/urandom | tr -d ' \n' > "$folder/$name"
        chmod 644 "$folder/$name"
        echo "Created $folder/$name"
    fi
done
