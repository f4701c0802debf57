import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import type { BrokerError } from "../../broker/broker-error.ts"
import type { PubAck } from "../../broker/publication.ts"
import { isTooLarge, PublishError } from "../../broker/publication.ts"
import { mayBeStored } from "../../broker/publish-once.ts"
import { isConflict } from "../../broker/values.ts"
import type { OwnerFence } from "../../cluster/ownership.ts"
import type { OriginStreams } from "../../domain/backlog-message.ts"
import { maxEntries } from "../../domain/backlog-message.ts"
import type { Findings, LastMessage } from "./backlog-end.ts"
import { lookAfter, purgeReplaced, readBacklogEnd, removeReplaced } from "./backlog-end.ts"
import type { PendingStore } from "./backlog-write.ts"
import {
  BacklogWrite,
  entriesLeft,
  isOfWindow,
  referencesOf,
  storedBefore,
  takeGroup,
  waitingName
} from "./backlog-write.ts"
import type { EndpointWrites } from "./endpoint-writes.ts"
import type { PendingStores } from "./pending-stores.ts"
import type { Replaced } from "./written-tails.ts"
import { WrittenTails } from "./written-tails.ts"

/** Pause before a write is repeated that was not answered, unless a caller repeats it, ms. */
export const retryPauseMs = 500
/** How often in a row another message may be stored first: more says that another owner writes. */
const maxRefusals = 8
/** JetStream's error code for a write that expects another last message. */
const wrongLastSequence = 10071

/** Approximate size of a message besides its body and what is packed, bytes. */
const headerBytes = 300

export interface WriteStepsOptions {
  readonly broker: Broker["Service"]
  /** Of the partition. */
  readonly index: number
  /** The time at which this owner took over, ms since the epoch. */
  readonly owner: number
  /** Returns the highest sequence of an endpoint's backlog that reading knows of. */
  readonly highestOf: (key: string) => number
  /** True where messages from a sequence on may be replaced: reading has not reached them. */
  readonly mayReplace: (key: string, from: number) => boolean
  /**
   * Called before a message is written that replaces others. Nothing of the endpoint is read until
   * `replaced` or `kept` is called.
   */
  readonly replacing: (key: string) => void
  /** Another message is stored and holds all that these hold, which are removed soon. */
  readonly replaced: (key: string, seqs: ReadonlyArray<number>) => void
  /**
   * Called with the last message of a backlog, before this owner writes after it. Returns the
   * messages that it replaces and that may still be there: nothing else names them.
   */
  readonly leftBehind: (key: string, last: LastMessage) => ReadonlyArray<number>
  /** Nothing was replaced after all. */
  readonly kept: (key: string) => void
  /** The stream has lost its end: what has been acknowledged there may be gone. */
  readonly truncated: () => void
  /** Called with the bytes, roughly, of a message that was stored. */
  readonly wrote: (key: string, bytes: number) => void
  /** Stops a former owner: only the current owner writes. */
  readonly fence: Pick<OwnerFence, "asOwner">
}

const unanswered = ({ message, operation }: BrokerError) =>
  new PublishError({ subject: operation, reason: "timeout", code: 0, detail: message })

/** The steps in which what waits for an endpoint is written into its backlog. */
export class WriteSteps {
  readonly #options: WriteStepsOptions
  readonly #pending: PendingStores
  readonly #streams: OriginStreams
  readonly #tails = new WrittenTails()
  /** Number of messages composed: a part of their ids. */
  #composed = 0
  /** The highest sequence known in the stream. */
  #last = 0

  constructor(options: WriteStepsOptions, pending: PendingStores) {
    const { names } = options.broker
    this.#options = options
    this.#pending = pending
    this.#streams = { events: names.events, queue: names.deliveries(options.index) }
  }

  /** Forgets what was written for an endpoint. */
  forget(key: string): void {
    this.#tails.drop(key)
  }

  /** Does the next thing that is to be done for an endpoint. */
  step(writes: EndpointWrites): Effect.Effect<void, PublishError> {
    return Effect.suspend(() => {
      if (writes.isRemovalDue) return this.#removeReplaced(writes)
      if (writes.write !== undefined) return this.#tryAgain(writes, writes.write)
      if (writes.queue.length === 0) return writes.pause(retryPauseMs)
      if (writes.tail === undefined) return this.#readEnd(writes)
      if (writes.lingerMs > 0) return Effect.sleep(writes.lingerMs)
      return this.#attempt(writes, this.#compose(writes, writes.tail))
    })
  }

  #readEnd(writes: EndpointWrites): Effect.Effect<void, PublishError> {
    return Effect.matchEffect(this.#onBroker(readBacklogEnd(writes.of)), {
      onFailure: (error) => Effect.fail(unanswered(error)),
      onSuccess: ({ label, stored, tail }) =>
        Effect.sync(() => {
          const left = this.#options.leftBehind(writes.key, { seq: tail, label })
          writes.replaced = [...writes.replaced, ...left.map((seq) => ({ seq }))]
          writes.tail ??= tail
          writes.stored = Math.max(writes.stored, stored)
          this.#last = Math.max(this.#last, tail)
        })
    })
  }

  #compose(writes: EndpointWrites, tail: number): BacklogWrite {
    const { key, of, queue } = writes
    const { mayReplace, owner } = this.#options
    const held = this.#tails.get(key)
    const isFoldable =
      this.#tails.isFoldDue(key) &&
      held.at(-1)?.seq === tail &&
      queue[0] !== undefined &&
      isOfWindow(queue[0], held) &&
      writes.most === maxEntries &&
      writes.replaced.length === 0 &&
      mayReplace(key, held[0]?.seq ?? 0)
    const folded = isFoldable ? referencesOf(held, of.subject, this.#streams) : undefined
    const fold = folded === undefined ? [] : held
    const requests = takeGroup(queue, entriesLeft(fold, writes.most))
    const replaces = [...fold, ...writes.replaced].map(({ seq }) => seq)
    const write = new BacklogWrite(
      {
        ...{ requests, fold, folded: folded ?? [], expected: tail },
        ...{ before: writes.stored, owner, replaces },
        ...{ streams: this.#streams, id: this.#nextId(key) }
      },
      // Reading may have found what was not answered.
      Math.max(this.#last, this.#options.highestOf(key))
    )
    if (write.isLarge) {
      writes.putBack(requests)
      writes.halve(requests.length)
      return this.#compose(writes, tail)
    }
    for (const request of requests) request.isSent = true
    if (fold.length > 0) this.#options.replacing(key)
    writes.write = write
    return write
  }

  /**
   * Returns the id of a message that is composed: the broker recognizes a repetition that arrives
   * late, after the message was stored, delivered and purged.
   */
  #nextId(key: string): string {
    return `${key}.${this.#options.owner}.${this.#composed++}`
  }

  #attempt(writes: EndpointWrites, write: BacklogWrite): Effect.Effect<void, PublishError> {
    const { body, headers } = write
    const { broker, fence } = this.#options
    const published = broker.publish(writes.of.subject, body, headers)
    // A break of the connection may have outlasted the lease.
    return Effect.matchEffect(Effect.andThen(fence.asOwner, published), {
      onFailure: (error) => this.#notStored(writes, write, error),
      onSuccess: (ack) => Effect.sync(() => this.#stored(writes, write, ack))
    })
  }

  /** Goes on with a write that is not settled. */
  #tryAgain(writes: EndpointWrites, write: BacklogWrite): Effect.Effect<void, PublishError> {
    const { requests } = write.parts
    if (write.mustLook) return this.#look(writes, write)
    const rest = requests.filter((request) => !request.hasLeft())
    if (rest.length === requests.length) return this.#attempt(writes, write)
    for (const request of requests) if (request.hasLeft()) this.#pending.end(request, storedBefore)
    if (rest.length === 0) {
      write.mustLook = true
      return Effect.void
    }
    const parts = { ...write.parts, requests: rest, id: this.#nextId(writes.key) }
    const changed = new BacklogWrite(parts, write.after)
    changed.isUnsure = true
    writes.write = changed
    return this.#attempt(writes, changed)
  }

  #stored(writes: EndpointWrites, write: BacklogWrite, { duplicate, seq }: PubAck): void {
    // The broker remembers ids longer than messages.
    if (duplicate) {
      write.mustLook = true
      return
    }
    const { after, isFirst, parts } = write
    const { key } = writes
    const { expected, requests } = parts
    this.#last = Math.max(this.#last, seq)
    writes.write = undefined
    writes.stored = write.stored
    writes.storedAt(seq)
    const tail = write.tailAt(seq)
    if (tail === undefined) this.#tails.drop(key)
    else
      this.#tails.wrote(key, tail, expected, (before) =>
        requests.every((request) => isOfWindow(request, before))
      )
    this.#wasFolded(writes, write, true, isFirst ? tail : undefined)
    this.#options.wrote(key, headerBytes + write.size)
    requests.forEach((request, index) => {
      this.#pending.end(request, { seq, entry: write.entryOf(index), after })
    })
  }

  /**
   * @param isStored true where a message holds the references of the folded ones.
   * @param by that message, where its subject holds nothing else before it.
   */
  #wasFolded(
    writes: EndpointWrites,
    { parts: { fold } }: BacklogWrite,
    isStored: boolean,
    by?: Replaced
  ) {
    if (fold.length === 0) return
    if (!isStored) return this.#options.kept(writes.key)
    writes.replaced = [...writes.replaced, ...fold]
    writes.replacedBy = by
    const seqs = fold.map(({ seq }) => seq)
    this.#options.replaced(writes.key, seqs)
  }

  #notStored(
    writes: EndpointWrites,
    write: BacklogWrite,
    error: PublishError
  ): Effect.Effect<void, PublishError> {
    return Effect.suspend(() => {
      const isLarge = isTooLarge(error)
      if (isConflict(error)) writes.refusals++
      else if (isLarge && write.isDivisible) writes.halve(write.parts.requests.length)
      if (isConflict(error) || (isLarge && write.isUnsure)) {
        write.mustLook = true
        return Effect.void
      }
      write.isUnsure ||= mayBeStored(error)
      if (write.isUnsure) return Effect.fail(error)
      const requests = this.#dropWrite(writes, write)
      if (isLarge && write.isDivisible) writes.putBack(requests)
      else for (const request of requests) this.#pending.fail(request, error)
      return Effect.void
    })
  }

  /** Gives up a write that is certainly not stored. Returns which of its requests are not settled. */
  #dropWrite(writes: EndpointWrites, write: BacklogWrite): ReadonlyArray<PendingStore> {
    writes.write = undefined
    this.#tails.drop(writes.key)
    this.#wasFolded(writes, write, false)
    return this.#pending.open(write.parts.requests)
  }

  /** Settles a write by what the leader has after the message that was expected to be the last. */
  #look(writes: EndpointWrites, write: BacklogWrite): Effect.Effect<void, PublishError> {
    const wanted = new Set(
      this.#pending.open(write.parts.requests).map(({ delivery }) => waitingName(delivery))
    )
    const known = { tail: write.parts.expected, stored: writes.stored }
    const { owner } = this.#options
    const looking = lookAfter(writes.of, known, { owner, streams: this.#streams, wanted })
    return Effect.matchEffect(this.#onBroker(looking), {
      onFailure: (error) => Effect.fail(unanswered(error)),
      onSuccess: (findings) => Effect.sync(() => this.#settle(writes, write, findings))
    })
  }

  #settle(
    writes: EndpointWrites,
    write: BacklogWrite,
    { found, replaced, stored, tail }: Findings
  ): void {
    const { key } = writes
    const { expected, fold } = write.parts
    const open = this.#pending.open(write.parts.requests)
    const isReplaced = fold.some(({ seq }) => replaced.has(seq))
    // Nothing of it was read or removed meanwhile.
    if (fold.length > 0 && tail < expected) this.#options.truncated()
    writes.write = undefined
    writes.tail = tail
    writes.stored = stored
    this.#last = Math.max(this.#last, tail)
    // A truncated stream gives their sequences again.
    writes.replaced = writes.replaced.filter(({ seq }) => seq < tail)
    this.#tails.drop(key)
    this.#wasFolded(writes, write, isReplaced)
    const missing: Array<PendingStore> = []
    for (const request of open) {
      const at = found.get(waitingName(request.delivery))
      if (at !== undefined) this.#pending.end(request, { ...at, after: expected })
      else if (request.hasLeft()) this.#pending.end(request, storedBefore)
      else if (request.callers.size === 0) this.#pending.drop(request)
      else missing.push(request)
    }
    if (writes.refusals <= maxRefusals) {
      writes.putBack(missing)
      return
    }
    writes.refusals = 0
    const { subject } = writes.of
    const detail = "another writer stores messages all the time"
    const error = new PublishError({ subject, reason: "rejected", code: wrongLastSequence, detail })
    for (const request of missing) this.#pending.fail(request, error)
  }

  #removeReplaced(writes: EndpointWrites): Effect.Effect<void> {
    const { of, replaced, replacedBy } = writes
    const gone = replacedBy === undefined ? replaced.slice(0, 1) : replaced
    const removal =
      replacedBy === undefined
        ? Effect.forEach(gone, (one) => removeReplaced(of, one))
        : purgeReplaced(of, replacedBy)
    // A new owner drains what was replaced where it had begun before that was stored.
    return Effect.match(Effect.andThen(this.#options.fence.asOwner, this.#onBroker(removal)), {
      onFailure: () => writes.removalFailed(),
      onSuccess: () => writes.removed(gone)
    })
  }

  #onBroker<A, E>(work: Effect.Effect<A, E, Broker>): Effect.Effect<A, E> {
    return Effect.provideService(work, Broker, this.#options.broker)
  }
}
