import type { Names } from "../domain/names.ts"

/**
 * Sequences per ms since the epoch, as far as a stream that is made again begins. Facts, message ids
 * and revisions refer to sequences of the former stream, and nobody knows its last one any more. No
 * stream of ours takes that many messages a ms for years, and the figure stays exact in a double.
 */
const sequencesPerMs = 16

/**
 * The same for streams of partitions, which take fewer: places in them have entries (`slotOf`), for
 * which a double is exact up to the sequence 2^44, which this reaches in 2109.
 */
const sequencesPerMsOfPartitions = 4

/**
 * Returns a sequence above all that a stream which was removed can have reached.
 *
 * @param isOfPartition whether it is a partition's queue or backlog.
 */
export const beyondRemoved = (nowMs: number, isOfPartition = false): number =>
  Math.floor(nowMs) * (isOfPartition ? sequencesPerMsOfPartitions : sequencesPerMs)

/**
 * A gap of more sequences than any stream stores: the stream was removed and made again
 * ({@link beyondRemoved}). What it held is not known.
 */
export const remadeGap = 2 ** 40

/** Says what may be lost with each stream of an installation of this many partitions. */
export const lossesOf = (names: Names, partitions: number): ReadonlyMap<string, string> => {
  const bucket = (name: string, loss: string) => [`KV_${name}`, loss] as const
  const sentAgain =
    "`petrel audit` names the deliveries that had not ended, and `petrel replay` sends their events again"
  return new Map([
    [
      names.events,
      "events that were not routed yet are lost: publish them again; earlier events can be neither audited nor replayed"
    ],
    [
      names.history,
      "earlier deliveries are forgotten, so a delivery that was in flight may be sent twice, and nothing from before can be audited"
    ],
    [
      names.intake,
      "requests that had not become events are lost, and repeats are not recognised: let the providers send their recent events again"
    ],
    [names.origins, "a recent event may be delivered twice, if the broker copies it again"],
    [names.dead, "the dead letters are lost; the history still names each"],
    [
      names.configuration,
      "configurations of endpoints that are older than the history are lost: plans made from them cannot be audited"
    ],
    bucket(
      names.buckets.endpoints,
      "all endpoints and settings of tenants are lost, and events are not routed until the endpoints are back: `petrel rebuild endpoints` restores them from the history"
    ),
    bucket(
      names.buckets.health,
      "circuits begin closed, and it is forgotten how long endpoints have failed: `petrel rebuild health`, without workers, computes both from the history"
    ),
    bucket(
      names.buckets.retries,
      "decisions that were not carried out yet are made again: an attempt may be made twice"
    ),
    bucket(
      names.buckets.workers,
      "workers take their partitions again: running ones need a restart"
    ),
    bucket(
      names.buckets.alerts,
      "raised alerts are forgotten, and raised again if they still hold; set thresholds again with `petrel alerts thresholds --set`"
    ),
    bucket(names.buckets.tokens, "all tokens are lost: make new ones with `petrel token create`"),
    bucket(names.buckets.jobs, "running jobs, and the results of former ones, are lost"),
    bucket(
      names.buckets.sources,
      "all sources are lost: requests of providers are refused until the sources are added again"
    ),
    ...Array.from({ length: partitions }, (_, index) => index).flatMap((index) => [
      [
        names.deliveries(index),
        `deliveries that waited in partition ${index} are lost: ${sentAgain}`
      ] as const,
      [
        names.backlog(index),
        `deliveries that waited in backlogs of partition ${index} are lost: ${sentAgain}`
      ] as const
    ])
  ])
}
