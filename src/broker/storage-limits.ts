import type { JetStreamManager } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "./broker.ts"
import { ifFound, streamNotFound } from "./broker-error.ts"
import { natsClients } from "./clients.ts"

const mebibyte = 1024 ** 2
const gibibyte = 1024 ** 3

/** Size limits of the bounded streams, bytes. */
export interface Shares {
  /** Beyond it, the event stream rejects publishes. */
  readonly eventBytes: number
  /** Beyond it, the history drops its oldest facts. */
  readonly historyBytes: number
  /** Beyond it, dead letters are rejected. */
  readonly deadBytes: number
  /** Beyond it, what comes in from outside is rejected. */
  readonly intakeBytes: number
}

/**
 * Size limit of the event stream if the size of the store is unknown: half of the store in the
 * `nats.conf` that comes with Petrel.
 */
export const defaultEventBytes = 10 * gibibyte

/** Minimum size limit of a stream: a handful of events of a usual size. */
export const minStreamBytes = 16 * mebibyte

/** The smallest store that fits all the limits. */
export const minStoreBytes = 4 * minStreamBytes

const mostDeadBytes = gibibyte
/** The least that dead letters and the intake get of a store, bytes: together a stream's minimum. */
const leastDeadBytes = 12 * mebibyte
const leastIntakeBytes = 4 * mebibyte

/**
 * Derives the other limits from that of the event stream, so that publishers are rejected before
 * Petrel's own writes are. The store is assumed to be twice as large as the event stream: a quarter
 * of it is for the history, at most an eighth for dead letters, a sixteenth for what comes in. The
 * rest is for queues, backlogs and buckets, which have no limit of their own.
 *
 * The broker limits what is stored, not what is reserved: a stream without a limit can take the
 * storage of all others. So the history has a limit too.
 */
export const sharesWithEvents = (eventBytes: number): Shares => ({
  eventBytes,
  historyBytes: Math.max(minStreamBytes, Math.floor(eventBytes / 2)),
  deadBytes: Math.min(mostDeadBytes, Math.max(leastDeadBytes, Math.floor(eventBytes / 4))),
  intakeBytes: Math.max(leastIntakeBytes, Math.floor(eventBytes / 8))
})

/**
 * Returns what queues and backlogs may take together: the rest of a store twice as large as the
 * event stream's limit, but at least a quarter of that limit. Returns undefined if the event stream
 * or the history has no limit: then the size of the store is unknown.
 */
export const waitingBytes = ({
  deadBytes,
  eventBytes,
  historyBytes,
  intakeBytes
}: Shares): number | undefined =>
  eventBytes <= 0 || historyBytes <= 0
    ? undefined
    : Math.max(
        eventBytes / 4,
        eventBytes - historyBytes - Math.max(0, deadBytes) - Math.max(0, intakeBytes)
      )

/**
 * Returns what queues may take, and what backlogs may: half of {@link waitingBytes} each. What fills
 * one of them leaves the other alone.
 */
export const waitingSpace = (
  shares: Shares
): { readonly queues: number | undefined; readonly backlogs: number | undefined } => {
  const bytes = waitingBytes(shares)
  const half = bytes === undefined ? undefined : bytes / 2
  return { queues: half, backlogs: half }
}

/** Paused routing resumes when the waiting deliveries take less than this share of their limit. */
export const resumeBelowShare = 7 / 8

/** The limits for a store of a given size; the event stream gets half of it. */
export const sharesOf = (store: number): Shares => sharesWithEvents(Math.floor(store / 2))

/**
 * Decreasing sizes to try for the event stream, for a store with less free space than the first
 * needs.
 */
export const eventBytesToTry = (first: number): ReadonlyArray<number> => {
  const sizes = [Math.max(first, minStoreBytes / 2)]
  for (let next = first / 2; next >= minStoreBytes / 2; next /= 2) sizes.push(Math.floor(next))
  return sizes
}

/** Storage of an account, bytes. All copies count. */
interface AccountStorage {
  /** Undefined if the account has no limit; the size of the store is unknown then. */
  readonly limit: number | undefined
  readonly used: number
  /** Reserved for streams. Each stream counts once, however many copies it has. */
  readonly reserved: number
  /**
   * True if the limit is that of a tier for this number of copies, which counts each message once.
   */
  readonly isTier: boolean
}

/** Returns the free storage of an account for one copy of new streams; undefined if unknown. */
export const reservableBytes = (
  { isTier, limit, reserved, used }: AccountStorage,
  replicas: number
): number | undefined => {
  if (limit === undefined) return undefined
  // Without tiers, usage and limit count each copy, but the broker reports a reservation once.
  const copies = isTier ? 1 : replicas
  return Math.max(0, Math.floor((limit - Math.max(used, reserved * copies)) / copies))
}

/**
 * Reads the storage of an account, for streams with this number of copies.
 *
 * @param of JetStream of the account. (Default: this account)
 */
export const readReservations = Effect.fnUntraced(function* (
  replicas: number,
  of?: JetStreamManager
) {
  const { ask, jsm } = yield* natsClients
  const info = yield* ask("look at the account", () => (of ?? jsm).getAccountInfo())
  const tier = info.tiers?.[`R${replicas}`]
  const { limits, reserved_storage, storage } = tier ?? info
  return {
    limit: limits.max_storage > 0 ? limits.max_storage : undefined,
    used: storage,
    reserved: reserved_storage,
    isTier: tier !== undefined
  } satisfies AccountStorage
})

/** Reads the storage that the account uses, and its limit, bytes; null for none. */
export const readAccountStorage = Effect.gen(function* () {
  const { ask, jsm } = yield* natsClients
  const { limits, storage } = yield* ask("look at the account", () => jsm.getAccountInfo())
  return { bytes: storage, limitBytes: limits.max_storage > 0 ? limits.max_storage : null }
})

/** Default maximum of an embedded broker's store. */
export const maxStoreBytes = 16 * gibibyte

/** The disk that holds a broker's store, in bytes. */
export interface Disk {
  readonly free: number
  /** Used by the store. */
  readonly used: number
}

/**
 * Returns the default size of an embedded broker's store, in whole MiB: half of the disk space
 * available to it, at most 16 GiB, and always more than is already stored.
 */
export const storeOn = ({ free, used }: Disk): number => {
  const usual = Math.min(maxStoreBytes, (free + used) / 2)
  const grown = Math.min(2 * used, used + 0.75 * free)
  return Math.floor(Math.max(usual, grown) / mebibyte) * mebibyte
}

/**
 * A stream's limit (undefined if the stream does not exist yet) and the size of its contents, in
 * bytes.
 */
export interface Bounded {
  readonly bound: number | undefined
  readonly held: number
}

/**
 * Returns the limit of a stream after its embedded broker was started with another store size. A
 * limit that was chosen with `petrel init` stays. A limit that was derived from the former size, or
 * that is missing, follows the new size, unless more is stored: a restart drops and rejects
 * nothing.
 *
 * @param next the stream's share of the new store size.
 * @param former the stream's share of the former store size.
 */
export const boundAfterResize = (
  { bound, held }: Bounded,
  next: number,
  former: number | undefined
): number => {
  if (bound === undefined) return next
  const isOurs = bound < 0 || bound === former
  return isOurs && next >= held ? next : bound
}

/** Reads what queues and backlogs may take, from the limits of the other streams. */
export const readWaitingSpace = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const bound = (name: string) =>
    Effect.map(streamInfo(`look at stream ${name}`, name), ({ config }) => config.max_bytes)
  const [eventBytes, historyBytes, deadBytes, intakeBytes = 0] = yield* Effect.all(
    [
      bound(names.events),
      bound(names.history),
      bound(names.dead),
      ifFound(bound(names.intake), streamNotFound)
    ],
    { concurrency: 4 }
  )
  return waitingSpace({ eventBytes, historyBytes, deadBytes, intakeBytes })
})
