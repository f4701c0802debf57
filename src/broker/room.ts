import { Effect } from "effect"
import { Broker } from "./connection.ts"

const mebibyte = 1024 ** 2
const gibibyte = 1024 ** 3

/** Bytes that the bounded streams may hold. */
export interface Shares {
  /** Publishers are refused beyond it. */
  readonly eventBytes: number
  /** The history drops its oldest facts beyond it. */
  readonly historyBytes: number
  /** Dead letters are refused beyond it. */
  readonly deadBytes: number
}

/** The event stream's room where nobody says how large the store is: half of the `nats.conf` that Petrel comes with. */
export const defaultEventBytes = 10 * gibibyte

/** The least room of any of them: a handful of events of a usual size. */
export const minStreamBytes = 16 * mebibyte

/** The smallest store that the shares fit into. */
export const minStoreBytes = 4 * minStreamBytes

const mostDeadBytes = gibibyte

/**
 * The rooms that go with that of the event stream, so that publishers are refused before the engine
 * is. The store is taken to be twice as large: a quarter of it is for the history, at most an eighth
 * for dead letters. The rest has no bound of its own: queues, backlogs and buckets.
 *
 * A broker counts what is stored and not what is reserved: a stream without a bound can take the
 * room of all others. So the history has one too.
 */
export const sharesBeside = (eventBytes: number): Shares => ({
  eventBytes,
  historyBytes: Math.max(minStreamBytes, Math.floor(eventBytes / 2)),
  deadBytes: Math.min(mostDeadBytes, Math.max(minStreamBytes, Math.floor(eventBytes / 4)))
})

/**
 * What queues and backlogs may take together: what is left of a store that is twice as large as the
 * event stream's bound, and a quarter of that bound at least. Undefined where the event stream or the
 * history has no bound: then nobody has said how large the store is.
 */
export const waitingBytes = ({
  deadBytes,
  eventBytes,
  historyBytes
}: Shares): number | undefined =>
  eventBytes <= 0 || historyBytes <= 0
    ? undefined
    : Math.max(eventBytes / 4, eventBytes - historyBytes - Math.max(0, deadBytes))

/** Routing that is held back goes on when what waits takes less than this part of its room. */
export const resumeBelowShare = 7 / 8

/** The shares of a store of so many bytes, of which the event stream gets half. */
export const sharesOf = (store: number): Shares => sharesBeside(Math.floor(store / 2))

/** Smaller and smaller rooms for events, for a store that turns out to have less than the first needs. */
export const eventBytesToTry = (first: number): ReadonlyArray<number> => {
  const sizes = [Math.max(first, minStoreBytes / 2)]
  for (let next = first / 2; next >= minStoreBytes / 2; next /= 2) sizes.push(Math.floor(next))
  return sizes
}

/** What an account says of its room, in bytes of all copies. */
export interface AccountRoom {
  /** Undefined: it has no limit, and how large the store is nobody says. */
  readonly limit: number | undefined
  readonly used: number
  /** Set aside for streams, each copy counted once only. */
  readonly reserved: number
  /** True where the limit holds for streams with so many copies, and counts each message once. */
  readonly isTier: boolean
}

/** What is left of an account for one copy of new streams; undefined where nobody knows. */
export const roomLeft = (
  { isTier, limit, reserved, used }: AccountRoom,
  replicas: number
): number | undefined => {
  if (limit === undefined) return undefined
  // Without tiers each copy counts, in what is used and in the limit; what is reserved is told once.
  const copies = isTier ? 1 : replicas
  return Math.max(0, Math.floor((limit - Math.max(used, reserved * copies)) / copies))
}

/** Asks the broker for the room of the account, for streams with so many copies. */
export const readAccountRoom = Effect.fnUntraced(function* (replicas: number) {
  const { ask, jsm } = yield* Broker
  const info = yield* ask("look at the account", () => jsm.getAccountInfo())
  const tier = info.tiers?.[`R${replicas}`]
  const { limits, reserved_storage, storage } = tier ?? info
  return {
    limit: limits.max_storage > 0 ? limits.max_storage : undefined,
    used: storage,
    reserved: reserved_storage,
    isTier: tier !== undefined
  } satisfies AccountRoom
})

/** The most that an embedded broker takes of a disk unasked. */
export const maxStoreBytes = 16 * gibibyte

/** What is known of the disk that a broker's store is on, in bytes. */
export interface Disk {
  readonly free: number
  /** Taken by the store already. */
  readonly used: number
}

/**
 * How much a broker of our own may fill, in whole MiB: half of what the disk has for it, at most
 * 16 GiB, and never so little that what is stored already leaves no room.
 */
export const storeOn = ({ free, used }: Disk): number => {
  const usual = Math.min(maxStoreBytes, (free + used) / 2)
  const grown = Math.min(2 * used, used + 0.75 * free)
  return Math.floor(Math.max(usual, grown) / mebibyte) * mebibyte
}

/** A stream's bound, undefined where there is none yet, and what is in it, in bytes. */
export interface Bounded {
  readonly bound: number | undefined
  readonly held: number
}

/**
 * The bound of a stream after its embedded broker was started with another size of the store. What
 * somebody chose with `petrel init` stays. What came of the former size, or is from before there
 * were bounds, follows the size, unless more is stored: nothing is dropped or refused by a restart.
 *
 * @param next its share of the store as it is now.
 * @param former its share of the store as it was.
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
