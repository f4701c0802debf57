import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import type { HeaderList, PubAck } from "../../src/broker/publication.ts"
import { PublishError } from "../../src/broker/publication.ts"
import type { Fact } from "../../src/domain/fact.ts"
import { makeNames } from "../../src/domain/names.ts"
import { Facts } from "../../src/history/facts.ts"

/** How `tryAppend` ends: `lost` stores the fact, but the acknowledgement does not arrive. */
type Answer = "stored" | "refused" | "lost" | "none yet"

/** A history in memory that stores each id once. */
export class MemoryHistory {
  readonly stored: Array<{ readonly id: string; readonly fact: Fact }> = []
  /** Facts that were found after their acknowledgement was lost. */
  readonly confirmed: Array<Fact> = []
  answer: Answer = "stored"
  readonly #held: Array<() => void> = []
  readonly facts: Facts["Service"]

  constructor() {
    this.facts = Facts.of({
      append: (fact, id) => Effect.sync(() => this.store(fact, id)),
      appendAnew: (make) => Effect.map(make, ({ fact, id }) => this.store(fact, id)),
      appendWithin: (_, fact, id) => Effect.sync(() => this.store(fact, id)),
      appendWhile: (condition, _, fact, id) =>
        Effect.map(condition, (holds) => (holds ? this.store(fact, id) : undefined)),
      tryAppend: (fact, id, settle) => {
        const { answer } = this
        if (answer === "none yet") {
          this.#held.push(() => settle(this.store(fact, id)))
          return
        }
        const ack = answer === "refused" ? undefined : this.store(fact, id)
        settle(answer === "stored" ? ack : undefined)
      },
      confirmed: (fact) => void this.confirmed.push(fact),
      isTaking: () => true,
      isOpen: () => true,
      ready: Effect.void
    })
  }

  /** Returns the kinds of all facts, in order. */
  get kinds() {
    return this.stored.map(({ fact }) => fact.kind)
  }

  /** Stores what was appended while the answer was `none yet`, and says so. */
  answerHeld(): void {
    for (const settle of this.#held.splice(0)) settle()
  }

  store(fact: Fact, id: string): PubAck {
    const there = this.stored.findIndex((each) => each.id === id)
    if (there < 0) this.stored.push({ id, fact })
    return {
      stream: "HISTORY",
      seq: there < 0 ? this.stored.length : there + 1,
      duplicate: there >= 0
    }
  }
}

interface Published {
  readonly subject: string
  readonly body: string
}

/** JetStream's error code where another revision is there than expected. */
const wrongLastSequence = 10071

interface Value {
  readonly operation: "PUT" | "PURGE"
  readonly revision: number
  readonly string: () => string
}

/**
 * A broker in memory that knows single messages only: the facts of a history, and the values of the
 * retries bucket. Anything else that is asked of it is a defect of the test.
 */
export class MemoryBroker {
  readonly history = new MemoryHistory()
  readonly published: Array<Published> = []
  /** Values and delete markers by key. */
  readonly values = new Map<string, Value>()
  /** How often a value was read. */
  reads = 0
  /** How many publishes it still refuses. */
  refusals = 0
  /** How many publishes it still stores without an answer. */
  lostAnswers = 0
  /** Runs once, before the next publish is stored. */
  beforeWrite: Effect.Effect<void> | undefined
  readonly service: Broker["Service"]

  constructor() {
    const names = makeNames()
    const prefix = `$KV.${names.buckets.retries}.`
    const refuse = (subject: string, reason: "rejected" | "timeout", code = 0) =>
      new PublishError({ subject, reason, code, detail: reason })
    const store = (subject: string, body: string, headers: HeaderList) =>
      Effect.suspend(() => {
        const key = subject.slice(prefix.length)
        const { "KV-Operation": operation, "Nats-Expected-Last-Subject-Sequence": expected } =
          Object.fromEntries<string | undefined>(headers)
        if (expected !== undefined && Number(expected) !== (this.values.get(key)?.revision ?? 0))
          return refuse(subject, "rejected", wrongLastSequence)
        const revision = this.published.push({ subject, body })
        this.values.set(key, {
          ...{ operation: operation === undefined ? "PUT" : "PURGE", revision, string: () => body }
        })
        if (this.lostAnswers-- > 0) return refuse(subject, "timeout")
        return Effect.succeed<PubAck>({ stream: "KV", seq: revision, duplicate: false })
      })
    const publish = (subject: string, body: string, headers: HeaderList) =>
      Effect.suspend(() => {
        if (this.refusals-- > 0) return refuse(subject, "timeout")
        const { beforeWrite = Effect.void } = this
        this.beforeWrite = undefined
        return Effect.andThen(beforeWrite, store(subject, body, headers))
      })
    const entry = (_: string, key: string) =>
      Effect.sync(() => {
        this.reads++
        return this.values.get(key) ?? null
      })
    const readMessage = (_: string, __: string, { seq }: { readonly seq: number }) =>
      Effect.sync(() => {
        const found = this.history.stored[seq - 1]
        return found === undefined ? null : { string: () => JSON.stringify(found.fact) }
      })
    const service = { names, publish, life: () => undefined, entry, readMessage }
    this.service = service as unknown as Broker["Service"]
  }

  /** Runs an effect with this broker and its history. */
  run<A, E, R>(work: Effect.Effect<A, E, R>) {
    return work.pipe(
      Effect.provideService(Broker, this.service),
      Effect.provideService(Facts, this.history.facts)
    )
  }
}
