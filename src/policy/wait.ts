/**
 * Where a retry waits, given how many wait already as NAKs of the same partition.
 *
 * A NAKed message stays pending on the partition's one consumer, which slows down for every
 * endpoint of the partition as they pile up: healthy deliveries take 4 ms (p99) beside 50 000 of
 * them, 81 ms and most of a core beside 500 000. A schedule of the broker costs the same however
 * many there are, but is a publish more and comes less punctually. So the few wait as NAKs, and
 * what goes beyond the limit waits as schedules.
 */
export const waitBy = (waiting: number, limit = 20_000): "nak" | "schedule" =>
  waiting < limit ? "nak" : "schedule"
