import { Context, Effect, Layer } from "effect"
import { Broker } from "../broker/broker.ts"
import { makeGate } from "../broker/gate.ts"
import { type PubAck, PublishError } from "../broker/publication.ts"
import { type Fact, factResult } from "../domain/fact.ts"
import { Metrics } from "../metrics/worker-metrics.ts"
import { elapsedMs } from "../time/elapsed.ts"

/** Appends without a known result that are remembered. */
const maxUnsure = 10_000

/**
 * Finds out which appends have stored a fact that was not there, so that each fact is counted by
 * the worker that stored it, and once: not where a former owner stored it, but also where the
 * acknowledgement was lost and a second try met the first.
 */
export class StoredOnce {
  readonly #stored: (fact: Fact) => void
  /** Ids of appends whose acknowledgement did not arrive. */
  readonly #unsure = new Set<string>()

  /** @param stored called with each fact that an append here has stored. */
  constructor(stored: (fact: Fact) => void) {
    this.#stored = stored
  }

  /** Notes the result of a try to append a fact. */
  answered(fact: Fact, id: string, result: PubAck | PublishError): void {
    if (result instanceof PublishError) {
      if (result.reason !== "rejected") this.#remember(id)
      return
    }
    const wasUnsure = this.#unsure.size > 0 && this.#unsure.delete(id)
    if (!result.duplicate || (wasUnsure && isOwn(fact))) this.#stored(fact)
  }

  #remember(id: string): void {
    this.#unsure.add(id)
    if (this.#unsure.size <= maxUnsure) return
    const [oldest] = this.#unsure
    if (oldest !== undefined) this.#unsure.delete(oldest)
  }
}

/**
 * True where no other process uses the fact's id. An outcome with a plan has the plan's id, under
 * which another router's plan may be stored: who appends it looks there.
 */
const isOwn = ({ kind, plan }: Fact): boolean => plan === undefined || kind === "routed"

/** How long ago what was taken says something of what is taken now, ms. */
const takenWithinMs = 5_000

/** A fact, and the message id under which the history stores it once. */
export interface FactToStore {
  readonly fact: Fact
  readonly id: string
}

/**
 * Appends facts to the history, and reports whether the history accepts them. No fact, no attempt:
 * while the history rejects facts or does not answer, `ready` waits and no new attempt starts.
 */
export class Facts extends Context.Service<
  Facts,
  {
    /**
     * Appends a fact and waits without limit until the broker has stored it. The id stores it once
     * within the history's dedupe window.
     */
    readonly append: (fact: Fact, id: string) => Effect.Effect<PubAck>
    /** Like `append`, but decides anew for each try what is to be stored. */
    readonly appendAnew: (make: Effect.Effect<FactToStore>) => Effect.Effect<PubAck>
    /**
     * Like `append`, for a fact that must never be stored twice. Fails after `limit` ms, while the
     * history still knows the id that the first try may have stored.
     */
    readonly appendWithin: (
      limit: number,
      fact: Fact,
      id: string
    ) => Effect.Effect<PubAck, PublishError>
    /** Like `append`, but checks a condition before each try; returns nothing once it fails. */
    readonly appendWhile: (
      condition: Effect.Effect<boolean>,
      limit: number,
      fact: Fact,
      id: string
    ) => Effect.Effect<PubAck | undefined, PublishError>
    /**
     * Tries to append a fact without a fiber. Calls `settle` once, with undefined if the result is
     * not known to be a success. The caller then uses `append` with the same id.
     */
    readonly tryAppend: (
      fact: Fact,
      id: string,
      settle: (stored: PubAck | undefined) => void
    ) => void
    /**
     * Called when a fact was found that an append stored whose acknowledgement did not arrive, and
     * that carries a plan: another router's plan has the same id, so an acknowledgement as a
     * duplicate says nothing.
     */
    readonly confirmed: (fact: Fact) => void
    /** True while the history accepts facts. */
    readonly isOpen: () => boolean
    /** True if the history accepted a fact recently, so the next one can be expected to succeed. */
    readonly isTaking: () => boolean
    /** Waits until the history accepts facts; returns at once while it does. */
    readonly ready: Effect.Effect<void>
  }
>()("petrel/history/Facts") {
  static readonly layer = Layer.effect(
    Facts,
    Effect.gen(function* () {
      const broker = yield* Broker
      const { names } = broker
      const gate = makeGate(
        "the history takes no facts: nothing new is sent until it does",
        "the history takes facts again"
      )
      const subjectOf = ({ endpoint, kind, tenant }: Fact) =>
        names.subjects.fact(tenant, endpoint, factResult(kind), kind)
      const metrics = yield* Metrics
      const count = new StoredOnce((fact) => metrics.stored(fact))
      const send = (fact: Fact, id: string, settle: (result: PubAck | PublishError) => void) =>
        broker.send(subjectOf(fact), JSON.stringify(fact), [["Nats-Msg-Id", id]], (result) => {
          count.answered(fact, id, result)
          settle(result)
        })
      const publish = (fact: Fact, id: string) =>
        Effect.callback<PubAck, PublishError>((resume) =>
          // An interruption does not stop it: what is stored nonetheless is counted.
          send(fact, id, (result) =>
            resume(result instanceof PublishError ? Effect.fail(result) : Effect.succeed(result))
          )
        )
      let taken = Number.NEGATIVE_INFINITY
      return Facts.of({
        append: (fact, id) => gate.untilStored(publish(fact, id)),
        appendAnew: (make) =>
          gate.untilStored(Effect.flatMap(make, ({ fact, id }) => publish(fact, id))),
        appendWithin: (limit, fact, id) => gate.within(limit, publish(fact, id)),
        appendWhile: (condition, limit, fact, id) =>
          gate.within(
            limit,
            Effect.flatMap(condition, (holds) => (holds ? publish(fact, id) : Effect.undefined))
          ),
        tryAppend: (fact, id, settle) => {
          if (!gate.isHealthy()) return settle(undefined)
          send(fact, id, (result) => {
            const isRefused = result instanceof PublishError
            taken = isRefused ? Number.NEGATIVE_INFINITY : elapsedMs()
            settle(isRefused ? undefined : result)
          })
        },
        confirmed: (fact) => metrics.stored(fact),
        isTaking: () => gate.isHealthy() && elapsedMs() - taken < takenWithinMs,
        isOpen: gate.isOpen,
        ready: gate.ready
      })
    })
  )
}

/**
 * Appends one fact, outside of deliveries. The id stores it once within the history's dedupe window.
 */
export const appendFact = Effect.fnUntraced(function* (fact: Fact, id: string) {
  const { names, publish } = yield* Broker
  const { endpoint, kind, tenant } = fact
  const subject = names.subjects.fact(tenant, endpoint, factResult(kind), kind)
  return yield* publish(subject, JSON.stringify(fact), [["Nats-Msg-Id", id]])
})
