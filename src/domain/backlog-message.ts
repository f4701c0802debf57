/*
 * What a message of a backlog holds: up to 256 references to events, or one delivery with its body.
 *
 * A reference is a delivery without what its event tells: id, type, headers and body are read from
 * EVENTS when it is attempted. References are packed in a header, so that readers that leave out
 * bodies see them. An entry takes 4 to 8 bytes before base64: each differs little from the one
 * before.
 */
import { Buffer } from "node:buffer"
import { Option, Schema } from "effect"
import type { Addressee, Delivery } from "./delivery.ts"
import { firstRound, Progress, parseDelivery, untried } from "./delivery.ts"
import { placeName, readPlace } from "./fact.ts"
import type { GetHeader } from "./header-names.ts"

/** Maximum deliveries in one message. Places number them from 1, in 1/512 of a sequence. */
export const maxEntries = 256

/** A delivery whose event is read from EVENTS when it is attempted. */
export type DeliveryReference = Omit<Delivery, "content" | "event" | "leftBytes" | "type"> & {
  /** Size of the event's body, bytes. */
  readonly bytes: number
}

/** Names of the streams from which deliveries come into a backlog. */
export interface OriginStreams {
  readonly events: string
  /** The queue of the backlog's partition. */
  readonly queue: string
}

/** Returns the names of the streams from which deliveries come into a partition's backlogs. */
export const originStreams = (
  names: { readonly events: string; readonly deliveries: (partition: number) => string },
  partition: number
): OriginStreams => ({ events: names.events, queue: names.deliveries(partition) })

const entriesHeader = "petrel-entries"
const storedHeader = "petrel-stored"
const ownerHeader = "petrel-owner"
export const replacesHeader = "petrel-replaces"

/** What a message of a backlog says besides its deliveries. */
export interface BacklogLabel {
  /**
   * Number of deliveries ever stored in this backlog, those of this message included: the difference
   * between two messages counts what lies between them. It begins again once a backlog was empty.
   */
  readonly stored: number
  /**
   * The time at which the owner that wrote it took over; tells late writes of former owners. Undefined
   * where no owner did: what came from another partition is never late.
   */
  readonly owner: number | undefined
  /** Sequences of the messages whose entries this one holds again: they are to be removed. */
  readonly replaces: ReadonlyArray<number>
}

/** Returns the headers that a label becomes. */
export const labelHeaders = ({
  owner,
  replaces,
  stored
}: BacklogLabel): Array<readonly [string, string]> => [
  [storedHeader, String(stored)],
  ...(owner === undefined ? [] : [[ownerHeader, String(owner)] as const]),
  ...(replaces.length === 0 ? [] : [[replacesHeader, replaces.join(",")] as const])
]

const labelNames: ReadonlySet<string> = new Set([storedHeader, ownerHeader, replacesHeader])

/** True for a header of a label, which says nothing in another backlog. */
export const isOfLabel = (header: string): boolean => labelNames.has(header)

/** Reads a label; undefined for a message of a version that wrote none. */
export const labelIn = (get: GetHeader): BacklogLabel | undefined => {
  const stored = Number(get(storedHeader))
  const writer = get(ownerHeader)
  const owner = writer === undefined ? undefined : Number(writer)
  if (!Number.isSafeInteger(stored) || stored <= 0) return undefined
  if (owner !== undefined && !Number.isSafeInteger(owner)) return undefined
  const replaces = get(replacesHeader)?.split(",").map(Number) ?? []
  return { stored, owner, replaces }
}

/**
 * Returns the header that references become: their number, a space, and what is packed. They have
 * one endpoint.
 */
export const referencesHeader = (
  references: ReadonlyArray<DeliveryReference>,
  streams: OriginStreams
): readonly [string, string] => [entriesHeader, `${references.length} ${pack(references, streams)}`]

/**
 * Returns the references that a message of a backlog holds; undefined if it holds none, or if this
 * version cannot read them.
 *
 * @param subject its last two tokens are tenant and endpoint.
 */
export const referencesIn = (
  subject: string,
  get: GetHeader,
  streams: OriginStreams
): ReadonlyArray<DeliveryReference> | undefined => {
  const packed = get(entriesHeader)
  const [tenant, endpoint] = subject.split(".").slice(-2)
  return packed === undefined || tenant === undefined || endpoint === undefined
    ? undefined
    : unpack(packed, { tenant, endpoint }, streams)
}

/** Returns how many deliveries a message of a backlog holds, without unpacking it. */
export const entryCount = (get: GetHeader): number =>
  Math.max(1, Number.parseInt(get(entriesHeader) ?? "1", 10) || 1)

/** One delivery in a message of a backlog. */
export type BacklogEntry =
  | { readonly entry: undefined; readonly delivery: Delivery }
  | { readonly entry: number; readonly reference: DeliveryReference }

/**
 * Reads what a message of a backlog holds; undefined if this version cannot read it.
 *
 * @param subject its last two tokens are tenant and endpoint.
 */
export const backlogEntriesIn = (
  subject: string,
  get: GetHeader,
  streams: OriginStreams
): ReadonlyArray<BacklogEntry> | undefined => {
  if (get(entriesHeader) === undefined) {
    const delivery = parseDelivery(subject, get)
    return delivery === undefined ? undefined : [{ entry: undefined, delivery }]
  }
  return referencesIn(subject, get, streams)?.map((reference, index) => ({
    entry: index + 1,
    reference
  }))
}

/** Returns what identifies an entry's delivery, and what it waits with. */
export const waitingIn = (of: BacklogEntry): Omit<Delivery, "content" | "event" | "type"> =>
  of.entry === undefined ? of.delivery : of.reference

/** True where a delivery's numbers can be packed. */
export const isPackable = ({ began, deadline, eventAt, eventSeq, revision }: DeliveryReference) =>
  [began, deadline, eventAt, eventSeq, revision].every(Number.isSafeInteger)

const version = 1
/** What an entry has that the one before it has not. */
const has = {
  round: 1,
  configuration: 2,
  begin: 4,
  window: 8,
  originQueue: 16,
  originEvent: 32,
  originOther: 64,
  progress: 128
} as const

/** The entry before the first one. */
const start = {
  eventSeq: 0,
  eventAt: 0,
  round: firstRound,
  generation: "",
  revision: 0,
  window: 0,
  bytes: 0
}

const originKind = (
  { eventAt, eventSeq, origin }: DeliveryReference,
  { events, queue }: OriginStreams
): number => {
  if (origin === undefined) return 0
  if (origin === placeName({ stream: events, seq: eventSeq, at: eventAt })) return has.originEvent
  const place = readPlace(origin)
  return place?.stream === queue && place.entry === undefined ? has.originQueue : has.originOther
}

const pack = (references: ReadonlyArray<DeliveryReference>, streams: OriginStreams): string => {
  const out = new Writer()
  out.unsigned(version)
  let before = start
  for (const reference of references) {
    const { began, bytes, deadline, eventAt, eventSeq, origin = "", progress } = reference
    const { generation, revision, round } = reference
    const window = deadline - began
    const kind = originKind(reference, streams)
    const isSame = generation === before.generation && revision === before.revision
    const isUntried = progress.attempts === 0 && progress.ends === undefined
    const flags =
      (round === before.round ? 0 : has.round) +
      (isSame ? 0 : has.configuration) +
      (began === eventAt ? 0 : has.begin) +
      (window === before.window ? 0 : has.window) +
      kind +
      (isUntried ? 0 : has.progress)
    out.unsigned(flags)
    out.signed(eventSeq - before.eventSeq)
    out.signed(eventAt - before.eventAt)
    out.signed(bytes - before.bytes)
    if ((flags & has.round) > 0) out.text(round)
    if (!isSame) {
      out.text(generation)
      out.signed(revision)
    }
    if ((flags & has.begin) > 0) out.signed(began - eventAt)
    if ((flags & has.window) > 0) out.signed(window)
    if (kind === has.originQueue) {
      const place = readPlace(origin)
      out.unsigned(place?.seq ?? 0)
      out.signed((place?.at ?? 0) - eventAt)
    } else if (kind === has.originOther) out.text(origin)
    if (!isUntried) out.text(JSON.stringify(progress))
    before = { eventSeq, eventAt, round, generation, revision, window, bytes }
  }
  return out.base64
}

const decodeProgress = Schema.decodeUnknownOption(Schema.fromJsonString(Progress))

const unpack = (
  packed: string,
  to: Addressee,
  streams: OriginStreams
): ReadonlyArray<DeliveryReference> | undefined => {
  const input = new Reader(Buffer.from(packed.slice(packed.indexOf(" ") + 1), "base64"))
  if (input.unsigned() !== version) return undefined
  const references: Array<DeliveryReference> = []
  let before = start
  while (!input.isAtEnd) {
    const flags = input.unsigned()
    const eventSeq = before.eventSeq + input.signed()
    const eventAt = before.eventAt + input.signed()
    const bytes = before.bytes + input.signed()
    const round = (flags & has.round) > 0 ? input.text() : before.round
    const isSame = (flags & has.configuration) === 0
    const generation = isSame ? before.generation : input.text()
    const revision = isSame ? before.revision : input.signed()
    const began = (flags & has.begin) > 0 ? eventAt + input.signed() : eventAt
    const window = (flags & has.window) > 0 ? input.signed() : before.window
    const origin = originIn(flags, input, { eventSeq, eventAt }, streams)
    const progress =
      (flags & has.progress) > 0 ? Option.getOrUndefined(decodeProgress(input.text())) : untried
    if (progress === undefined || input.isShort) return undefined
    references.push({
      ...{ ...to, eventSeq, eventAt, round, began, deadline: began + window },
      ...{ generation, revision, progress, bytes },
      ...(origin === undefined ? {} : { origin })
    })
    before = { eventSeq, eventAt, round, generation, revision, window, bytes }
  }
  return references
}

const originIn = (
  flags: number,
  input: Reader,
  { eventAt, eventSeq }: Pick<Delivery, "eventAt" | "eventSeq">,
  { events, queue }: OriginStreams
): string | undefined => {
  if ((flags & has.originEvent) > 0)
    return placeName({ stream: events, seq: eventSeq, at: eventAt })
  if ((flags & has.originOther) > 0) return input.text()
  if ((flags & has.originQueue) === 0) return undefined
  const seq = input.unsigned()
  return placeName({ stream: queue, seq, at: eventAt + input.signed() })
}

/** Writes numbers of any size in as few bytes as they need: 7 bits each, the lowest first. */
class Writer {
  readonly #bytes: Array<number> = []

  unsigned(value: number): void {
    let rest = value
    while (rest >= 128) {
      this.#bytes.push((rest % 128) + 128)
      rest = Math.floor(rest / 128)
    }
    this.#bytes.push(rest)
  }

  /** Small numbers of either sign stay small: 0, -1, 1, -2 become 0, 1, 2, 3. */
  signed(value: number): void {
    this.unsigned(value < 0 ? -2 * value - 1 : 2 * value)
  }

  text(value: string): void {
    const bytes = Buffer.from(value)
    this.unsigned(bytes.length)
    this.#bytes.push(...bytes)
  }

  get base64(): string {
    return Buffer.from(this.#bytes).toString("base64")
  }
}

/** Reads what a {@link Writer} wrote. */
class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  /** True where more was read than there is. */
  get isShort(): boolean {
    return this.#at > this.#bytes.length
  }

  unsigned(): number {
    let value = 0
    let scale = 1
    while (true) {
      const byte = this.#bytes[this.#at++] ?? 0
      value += (byte & 127) * scale
      if (byte < 128) return value
      scale *= 128
    }
  }

  signed(): number {
    const value = this.unsigned()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  text(): string {
    const length = this.unsigned()
    const from = this.#at
    this.#at += length
    return this.#bytes.toString("utf8", from, this.#at)
  }
}
