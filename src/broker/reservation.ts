import { StorageType } from "@nats-io/jetstream"
import { Effect, Schedule } from "effect"
import { Broker } from "./broker.ts"
import { BrokerError, ifFound, streamNotFound } from "./broker-error.ts"
import { natsClients } from "./clients.ts"
import { NoSpaceError, TopologyError } from "./installed.ts"
import type { StreamSpec } from "./topology.ts"

const storageExceeded = 10047
/** Returned where the account bounds each stream: all together cannot be tried as one then. */
const streamTooLarge = 10122
/** Returned by a cluster without a suitable server, for whatever reason. */
const noSuitablePeers = 10005
/** Returned by a server that is alone, or by a cluster that is too small. */
const tooManyReplicas: ReadonlySet<number> = new Set([10074, 10058])

/** True if the broker refused a stream because it has too little storage. */
const isStorageShort = (error: unknown): error is BrokerError =>
  error instanceof BrokerError &&
  (error.code === storageExceeded ||
    (error.code === noSuitablePeers && error.message.includes("insufficient storage")))

/**
 * True if the broker refused a stream because a server that it knows is away, or has just started. Of
 * one that it has not heard of since its own start it says "miscellaneous issue".
 */
const isPeerOffline = (error: unknown): error is BrokerError =>
  error instanceof BrokerError &&
  error.code === noSuitablePeers &&
  /peer offline|miscellaneous issue/.test(error.message)

/** How often, each second, it is tried again to place a stream while a server is offline. */
const maxOfflineRetries = 20

/**
 * Places a stream once enough servers of the cluster are there: those of a cluster that has just
 * started know of each other only some seconds later.
 */
const oncePeersAreBack = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | TopologyError, R> => {
  const schedule = Schedule.spaced("1 second")
  const again = Effect.retry(effect, { while: isPeerOffline, schedule, times: maxOfflineRetries })
  const saying = Effect.logInfo(
    `a server of the cluster is offline or has just started; waiting for up to ${maxOfflineRetries} s`
  )
  const failing = ({ message }: BrokerError) =>
    new TopologyError({
      message: `a server of the cluster is offline, and each copy of a new stream needs one (${message}): bring it back, and run the same command again`
    })
  return effect.pipe(
    Effect.catch((error) =>
      isPeerOffline(error) ? Effect.andThen(saying, again) : Effect.fail(error)
    ),
    Effect.mapError((error) => (isPeerOffline(error) ? failing(error) : error))
  )
}

const lacksServers = (error: unknown): error is BrokerError =>
  error instanceof BrokerError &&
  error.code !== undefined &&
  (error.code === noSuitablePeers || tooManyReplicas.has(error.code))

/** What a stream of an installation reserves beyond what it has. */
interface Need {
  readonly name: string
  readonly isNew: boolean
  /** Copies beyond those that it has. */
  readonly copies: number
  /** Bytes of each copy. */
  readonly bytes: number
}

const needOf = Effect.fnUntraced(function* ({ stream }: StreamSpec) {
  const { streamInfo } = yield* Broker
  const { max_bytes = 0, name, num_replicas = 1 } = stream
  const look = streamInfo(`look at stream ${name}`, name)
  const config = (yield* ifFound(look, streamNotFound))?.config
  const need: Need = {
    name,
    isNew: config === undefined,
    copies: num_replicas - (config?.num_replicas ?? 0),
    bytes: Math.max(0, Math.max(0, max_bytes) - Math.max(0, config?.max_bytes ?? 0))
  }
  return need
})

/** Makes a stream that reserves as much as asked for, and removes it again. */
const tryStream = Effect.fnUntraced(function* (replicas: number, bytes: number) {
  const { ask, jsm, names } = yield* natsClients
  const name = `${names.events.replace(/EVENTS$/, "")}RESERVATION`
  const remove = ifFound(
    ask("remove the reservation", () => jsm.streams.delete(name)),
    streamNotFound
  )
  // An init that was killed may have left it.
  yield* remove
  const config = { name, subjects: [names.subjects.removed(name)], storage: StorageType.File }
  yield* ask("reserve space", () =>
    jsm.streams.add({
      ...config,
      num_replicas: replicas,
      ...(bytes > 0 ? { max_bytes: bytes } : {})
    })
  ).pipe(Effect.ensuring(Effect.ignore(remove)))
})

/** Returns a size in words, rounded up. */
export const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MiB`

/**
 * Fails unless the broker has the servers and the space for all streams together, before the first is
 * made. A cluster checks each stream by what its servers reported some seconds ago, and would reserve
 * more than they have.
 *
 * @param remedyOf says what to do, given the flag of `petrel init` for the largest stream.
 */
export const checkReservations = Effect.fnUntraced(function* (
  items: ReadonlyArray<StreamSpec>,
  replicas: number,
  remedyOf = (flag: string) =>
    `reserve less with \`petrel init ${flag}\`, or raise the account's max_file or the broker's max_file_store`
) {
  const { names, server } = yield* Broker
  const needs = yield* Effect.forEach(items, needOf, { concurrency: 8 })
  if (replicas > 1 && needs.some(({ copies }) => copies > 0))
    yield* oncePeersAreBack(tryStream(replicas, 0)).pipe(
      Effect.catchIf(lacksServers, ({ message }) =>
        Effect.fail(
          new TopologyError({
            message: `--replicas ${replicas} needs a cluster of that many brokers with JetStream${server().cluster === undefined ? ", and this broker is alone" : ""} (${message})`
          })
        )
      )
    )
  const bytes = needs.reduce((sum, need) => sum + need.bytes, 0)
  if (bytes === 0) return
  const most = needs.toSorted((a, b) => b.bytes - a.bytes).filter((need) => need.bytes > 0)
  const flags = new Map([
    [names.events, "--event-bytes"],
    [names.history, "--history-bytes"],
    [names.dead, "--dead-bytes"]
  ])
  const each = most.map((need) => `${need.name} ${mebibytes(need.bytes)}`).join(", ")
  const [largest] = most
  const flag = flags.get(largest?.name ?? "") ?? "--tenant-bytes"
  yield* tryStream(replicas, bytes).pipe(
    Effect.catchIf(
      ({ code }) => code === streamTooLarge,
      () => Effect.void
    ),
    oncePeersAreBack,
    Effect.catchIf(isStorageShort, () =>
      Effect.fail(
        new NoSpaceError({
          message: `the streams need ${mebibytes(bytes)} more (${each})${replicas > 1 ? ` on each of ${replicas} servers` : ""}, and the broker has less that is not reserved: ${remedyOf(flag)}`
        })
      )
    )
  )
})

/** How often a cluster is asked again, each second, for a stream that it has space for. */
const maxSpaceRetries = 15
const askingAgain = { schedule: Schedule.spaced("1 second"), times: maxSpaceRetries }

/**
 * Checks for space after streams were removed. The servers of a cluster may still report what these
 * had reserved, for some seconds.
 */
export const onceFreed = <E, R>(check: Effect.Effect<void, E, R>) =>
  Effect.retry(check, { while: (error) => error instanceof NoSpaceError, ...askingAgain })

/**
 * Makes a stream once space was found for all. The servers of a cluster may still report what was
 * reserved to find that out, for some seconds.
 *
 * @param remedy what to do if there is not enough space after all.
 */
export const untilReported = <A, E, R>(
  effect: Effect.Effect<A, E | BrokerError, R>,
  remedy: string
) => {
  return Effect.retry(oncePeersAreBack(effect), { while: isStorageShort, ...askingAgain }).pipe(
    Effect.catchIf(isStorageShort, ({ message }) =>
      Effect.fail(
        new NoSpaceError({
          message: `the broker has less free space than its servers reported before (${message}): wait a minute, and ${remedy}`
        })
      )
    )
  )
}
