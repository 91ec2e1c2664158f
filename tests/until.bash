# SPDX-License-Identifier: Apache-2.0
# Waits until a condition holds, ten seconds at most.
until_true() {
	local _
	for _ in $(seq 200); do
		if eval "$1"; then
			return 0
		fi
		sleep 0.05
	done
	echo "never true: $1"
	return 1
}
