import { Context, Effect, Layer } from "effect"
import { Broker } from "../broker/connection.ts"
import { elapsedMs } from "../broker/elapsed.ts"
import { makeGate } from "../broker/gate.ts"
import type { PubAck } from "../broker/publisher.ts"
import { PublishError } from "../broker/publisher.ts"
import type { Fact } from "../domain/fact.ts"
import { factResult } from "../domain/fact.ts"

/** How long ago what was taken says something of what is taken now, ms. */
const takenWithinMs = 5_000

/**
 * Appends facts to the history, and says whether it takes any. No fact, no attempt: while the
 * history refuses or does not answer, `ready` waits, and nothing new is to be sent.
 */
export class Facts extends Context.Service<
  Facts,
  {
    /**
     * Appends a fact and waits until the broker has it, however long that takes: what has happened
     * must be told. Under the same id it is stored once (inside the history's dedupe window).
     */
    readonly append: (fact: Fact, id: string) => Effect.Effect<PubAck>
    /** The same of a fact that is made anew for each try, since what is true may have changed. */
    readonly appendAnew: (make: Effect.Effect<Fact>, id: string) => Effect.Effect<PubAck>
    /**
     * The same as `append` for a fact that must not be stored twice at all: fails after `limit` ms,
     * while the history still knows the id of what it may have stored at the first try.
     */
    readonly appendWithin: (
      limit: number,
      fact: Fact,
      id: string
    ) => Effect.Effect<PubAck, PublishError>
    /** The same while a condition holds, which each try asks anew; gives nothing once it does not. */
    readonly appendWhile: (
      condition: Effect.Effect<boolean>,
      limit: number,
      fact: Fact,
      id: string
    ) => Effect.Effect<PubAck | undefined, PublishError>
    /**
     * Tries to append a fact without a fiber. `settle` is called once, with nothing where that is
     * not known to have worked: then it is for `append`, under the same id.
     */
    readonly tryAppend: (
      fact: Fact,
      id: string,
      settle: (stored: PubAck | undefined) => void
    ) => void
    /** True while the history takes facts. */
    readonly isOpen: () => boolean
    /** True where it has taken one lately: what happens next can surely be told. */
    readonly isTaking: () => boolean
    /** Waits until the history takes facts; at once while it does. */
    readonly ready: Effect.Effect<void>
  }
>()("petrel/history/Facts") {
  static readonly layer = Layer.effect(
    Facts,
    Effect.gen(function* () {
      const { names, publisher } = yield* Broker
      const gate = makeGate(
        "the history takes no facts: nothing new is sent until it does",
        "the history takes facts again"
      )
      const subjectOf = ({ endpoint, kind, tenant }: Fact) =>
        names.subjects.fact(tenant, endpoint, factResult(kind), kind)
      const publish = (fact: Fact, id: string) =>
        publisher.publish(subjectOf(fact), JSON.stringify(fact), [["Nats-Msg-Id", id]])
      let taken = Number.NEGATIVE_INFINITY
      return Facts.of({
        append: (fact, id) => gate.untilStored(publish(fact, id)),
        appendAnew: (make, id) =>
          gate.untilStored(Effect.flatMap(make, (fact) => publish(fact, id))),
        appendWithin: (limit, fact, id) => gate.within(limit, publish(fact, id)),
        appendWhile: (condition, limit, fact, id) =>
          gate.within(
            limit,
            Effect.flatMap(condition, (holds) => (holds ? publish(fact, id) : Effect.undefined))
          ),
        tryAppend: (fact, id, settle) => {
          if (!gate.isHealthy()) return settle(undefined)
          const headers = [["Nats-Msg-Id", id]] as const
          publisher.send(subjectOf(fact), JSON.stringify(fact), headers, (result) => {
            const isRefused = result instanceof PublishError
            taken = isRefused ? Number.NEGATIVE_INFINITY : elapsedMs()
            settle(isRefused ? undefined : result)
          })
        },
        isTaking: () => gate.isHealthy() && elapsedMs() - taken < takenWithinMs,
        isOpen: gate.isOpen,
        ready: gate.ready
      })
    })
  )
}
