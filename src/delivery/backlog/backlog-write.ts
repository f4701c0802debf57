import type { Effect } from "effect"
import type { HeaderList, PublishError } from "../../broker/publication.ts"
import type { DeliveryReference, OriginStreams } from "../../domain/backlog-message.ts"
import {
  isPackable,
  labelHeaders,
  maxEntries,
  referencesHeader,
  referencesIn
} from "../../domain/backlog-message.ts"
import type { Delivery, PlacedDelivery, Progress } from "../../domain/delivery.ts"
import { deliveryHeaders, roundKey } from "../../domain/delivery.ts"
import { placeName } from "../../domain/fact.ts"
import { isUntriedFirst } from "../recovery/partition-memory.ts"
import type { PackedReferences, WrittenTail } from "./written-tails.ts"

/**
 * Maximum length of packed references, characters: the broker takes 64 KiB of headers in all, and
 * 256 references of untried deliveries take 3.
 */
const maxPackedLength = 48 * 1024
/** How many of an endpoint's requests are looked at for one message. */
const maxLookedAt = 1_024

/** A delivery that is to be stored in its endpoint's backlog, with the progress that it has. */
export interface StoreRequest extends PlacedDelivery {
  readonly progress: Progress
  /** True where the delivery is known to have been stored, by what followed. */
  readonly hasLeft: () => boolean
}

/** Where a delivery is stored. */
export interface Stored {
  /** 0 where it is known by what followed that it was stored, and not where. */
  readonly seq: number
  /** Which of the message's entries, from 1; undefined for a message with one delivery. */
  readonly entry: number | undefined
  /** Below `seq`, unless the stream was truncated and has assigned sequences again. */
  readonly after: number
}

/** What is known of a delivery by what followed. */
export const storedBefore: Stored = { seq: 0, entry: undefined, after: -1 }

/** Ends the wait of one caller. */
export type Resume = (result: Effect.Effect<Stored, PublishError>) => void

/**
 * Identifies a delivery within its backlog: two of one round that came from two places are two. An
 * untried first round is one, even if it comes both directly from its event and through the queue.
 */
export const waitingName = (
  of: Pick<Delivery, "eventAt" | "eventSeq" | "origin" | "progress" | "round">
) => (isUntriedFirst(of) ? roundKey(of) : `${roundKey(of)} ${of.origin}`)

/** A request, until it is known how it ended. */
export class PendingStore {
  /** Identifies it among all. */
  readonly name: string
  readonly delivery: Delivery
  readonly body: Uint8Array
  readonly hasLeft: () => boolean
  /** Undefined where the delivery is stored with its body. */
  readonly reference: DeliveryReference | undefined
  readonly callers = new Set<Resume>()
  /** True while a message that holds it may be stored. */
  isSent = false

  constructor(name: string, request: StoreRequest, asReference: (delivery: Delivery) => boolean) {
    const { body, hasLeft, place, progress } = request
    this.name = name
    this.delivery = { ...request.delivery, progress, origin: placeName(place) }
    this.body = body
    this.hasLeft = hasLeft
    const { leftBytes } = this.delivery
    const reference = referenceTo(this.delivery, leftBytes ?? body.length)
    // What comes without its body goes on so: who left it knew how long its event is kept.
    const isReference =
      isPackable(reference) && (leftBytes !== undefined || asReference(this.delivery))
    this.reference = isReference ? reference : undefined
  }
}

const referenceTo = (delivery: Delivery, bytes: number): DeliveryReference => {
  const { content: _, event: __, leftBytes: ___, type: ____, ...rest } = delivery
  return { ...rest, bytes }
}

/** The time from the begin of a round to its deadline, ms. One message holds one window. */
const windowOf = ({ began, deadline }: DeliveryReference): number => deadline - began

/**
 * Returns the references of messages that were written, in order; undefined if one of them cannot be
 * read, which is then left as it is.
 */
export const referencesOf = (
  tails: ReadonlyArray<WrittenTail>,
  subject: string,
  streams: OriginStreams
): ReadonlyArray<DeliveryReference> | undefined => {
  const all: Array<DeliveryReference> = []
  for (const { count, packed } of tails) {
    const found = referencesIn(
      subject,
      (name) => (name === packed[0] ? packed[1] : undefined),
      streams
    )
    if (found?.length !== count) return undefined
    all.push(...found)
  }
  return all
}

/** True where messages that were written and a request could be one. */
export const isOfWindow = (
  { reference }: PendingStore,
  tails: ReadonlyArray<WrittenTail>
): boolean => reference !== undefined && tails.every(({ window }) => window === windowOf(reference))

/**
 * Takes from a queue the requests for the next message: a delivery with its body, or references of
 * one window up to the next such delivery. They keep their order.
 */
export const takeGroup = (queue: Array<PendingStore>, most: number): Array<PendingStore> => {
  const first = queue[0]?.reference
  if (first === undefined) return queue.splice(0, 1)
  const window = windowOf(first)
  const looked = queue.slice(0, maxLookedAt)
  const end = looked.findIndex(({ reference }) => reference === undefined)
  const group: Array<PendingStore> = []
  const left = looked.filter((request, index) => {
    const isInGroup =
      (end === -1 || index < end) &&
      group.length < most &&
      request.reference !== undefined &&
      windowOf(request.reference) === window
    if (isInGroup) group.push(request)
    return !isInGroup
  })
  queue.splice(0, looked.length, ...left)
  return group
}

/** What a message is written from. */
export interface WriteParts {
  readonly requests: ReadonlyArray<PendingStore>
  /** The messages whose references it holds again, before its own. (Mostly: none) */
  readonly fold: ReadonlyArray<WrittenTail>
  /** Their references. */
  readonly folded: ReadonlyArray<DeliveryReference>
  /** The last message before it: it is stored only where that is so. */
  readonly expected: number
  /** Number of deliveries that were stored before. */
  readonly before: number
  readonly owner: number
  /** Messages that it replaces, or that were replaced and may still be there. */
  readonly replaces: ReadonlyArray<number>
  readonly streams: OriginStreams
  /** A new id for each content. */
  readonly id: string
}

/** A message that is being written. */
export class BacklogWrite {
  readonly parts: WriteParts
  readonly headers: HeaderList
  readonly body: Uint8Array | string
  /** The header of a message of references; undefined for a delivery with its body. */
  readonly packed: PackedReferences | undefined
  readonly references: ReadonlyArray<DeliveryReference>
  /** Number of deliveries that are stored with it. */
  readonly stored: number
  /** Nothing that is stored by this write has a sequence at or below it. */
  readonly after: number
  /** True once a try was not answered: it may be stored. */
  isUnsure = false
  /** True where only the stream can say what became of it. */
  mustLook = false

  constructor(parts: WriteParts, after: number) {
    const { before, expected, folded, id, owner, replaces, requests, streams } = parts
    this.parts = parts
    this.after = after
    this.stored = before + requests.length
    const own = requests.flatMap(({ reference }) => reference ?? [])
    this.references = [...folded, ...own]
    const further: HeaderList = [
      ...labelHeaders({ stored: this.stored, owner, replaces }),
      ["Nats-Expected-Last-Subject-Sequence", String(expected)]
    ]
    const [copy] = own.length > 0 ? [] : requests
    if (copy === undefined) {
      this.packed = referencesHeader(this.references, streams)
      this.headers = [["Nats-Msg-Id", id], this.packed, ...further]
      this.body = ""
    } else {
      this.packed = undefined
      this.headers = [...deliveryHeaders(copy.delivery, id), ...further]
      this.body = copy.body
    }
  }

  /** Its size without most headers, bytes. */
  get size(): number {
    return this.packed?.[1].length ?? this.body.length
  }

  /** True where the broker may take a part of it. */
  get isLarge(): boolean {
    return (this.packed?.[1].length ?? 0) > maxPackedLength && this.isDivisible
  }

  /** True where its subject holds nothing before it that it does not hold as well. */
  get isFirst(): boolean {
    const [first] = this.parts.fold
    return this.parts.expected === 0 || first?.isFirst === true
  }

  /** What later writes need to know of it, once it is stored; undefined if it has no references. */
  tailAt(seq: number): WrittenTail | undefined {
    const { isFirst, packed, references } = this
    const [first] = references
    return packed === undefined || first === undefined
      ? undefined
      : { seq, packed, count: references.length, window: windowOf(first), isFirst }
  }

  get isDivisible(): boolean {
    return this.references.length > 1
  }

  /** Returns which entry of the message a request is, from 1; undefined for a message of its own. */
  entryOf(index: number): number | undefined {
    if (this.packed === undefined) return undefined
    return this.references.length - this.parts.requests.length + index + 1
  }
}

/** The number of requests that a message holds at most, given what it holds already. */
export const entriesLeft = (fold: ReadonlyArray<WrittenTail>, most: number): number =>
  fold.reduce((left, { count }) => left - count, Math.min(most, maxEntries))
