import { Effect, LogLevel, Option } from "effect"
import { Broker } from "../../broker/connection.ts"
import { Failpoint } from "../../broker/failpoint.ts"
import type { InFlight, InFlightWork } from "../../broker/in-flight.ts"
import type { AttemptOutcome } from "../../domain/attempt-outcome.ts"
import { untried } from "../../domain/delivery.ts"
import type { Fact, Plan } from "../../domain/fact.ts"
import { plannedOtherwise } from "../../domain/fact.ts"
import type { LiveEndpoint } from "../../endpoints/directory.ts"
import { Directory } from "../../endpoints/directory.ts"
import { Facts } from "../../history/facts.ts"
import type { DirectDelivery, DirectEnd, UncommittedPlan } from "../../routing/partition-owner.ts"
import { deliveredFact, logFact } from "../execution/delivery-fact.ts"
import { disableWhereGone, judgeFailure } from "../execution/failed-attempt.ts"
import type { HandlingOptions } from "../execution/handling.ts"
import type { Settlement } from "../execution/settlement.ts"
import type { Successes } from "../execution/successes.ts"
import { readSurely } from "../execution/successes.ts"
import type { Sender } from "../http/sender.ts"
import { startSending } from "../http/sender.ts"
import type { PartitionMemory } from "../recovery/partition-memory.ts"
import type { AckHandle } from "./ack-handle.ts"

export interface DirectDeliveryOptions {
  readonly memory: PartitionMemory
  readonly sender: Sender
  readonly worker: string
  /** Makes an id for each request that is sent. */
  readonly nextId: () => string
  /** Settlement of the partition's queue, where a failed delivery continues. */
  readonly settlement: Pick<Settlement, "asOwner" | "fence" | "isOpen" | "successes">
  /** No attempt begins while this returns false. */
  readonly mayAttempt: () => boolean
  /** Called with each attempt's outcome, before it is settled. */
  readonly answered: HandlingOptions["answered"]
}

const untriedEnd: DirectEnd = { _tag: "Untried" }
const delivered: DirectEnd = { _tag: "Delivered" }
const unknown: DirectEnd = { _tag: "Unknown" }

/** True where both facts are about the same attempt. */
const isSame = (one: Fact, other: Fact): boolean =>
  one.kind === other.kind &&
  one.delivery === other.delivery &&
  one.at === other.at &&
  one.worker === other.worker

/** Marks the outcome `planned-otherwise` if another router's plan won. */
const beside = (fact: Fact, planned: Option.Option<Fact>): Fact =>
  Option.exists(planned, ({ eventAt, eventSeq, plan }) => {
    if (eventSeq !== fact.eventSeq || eventAt !== fact.eventAt) return false
    // A plan with several parts may name the endpoint in another part.
    const names = plan?.endpoints.some(({ id }) => id === fact.endpoint) === true
    return names || plan?.last === false
  })
    ? fact
    : { ...fact, reason: plannedOtherwise }

/** Returns a direct delivery to routing without an attempt. */
export const leaveUntried = (direct: DirectDelivery) => direct.ended(untriedEnd)

/**
 * Attempts deliveries directly from their events, once. A success needs no message in a queue. A
 * failed delivery goes to the queue with its progress.
 */
export const makeDirectDeliveries = Effect.fnUntraced(function* (options: DirectDeliveryOptions) {
  const { memory, nextId, sender, settlement, worker } = options
  const { fence, successes } = settlement
  const { settled, directDeliveries } = memory
  const { clock } = sender
  const { names } = yield* Broker
  const directory = yield* Directory
  const facts = yield* Facts
  const reached = yield* Failpoint
  const logsDeliveries = yield* LogLevel.isEnabled("Debug")

  const readyFor = ({ delivery, key }: DirectDelivery): LiveEndpoint | undefined =>
    settlement.isOpen() &&
    options.mayAttempt() &&
    clock.currentTimeMillisUnsafe() < delivery.deadline
      ? directory.liveNow(delivery, key)
      : undefined

  /**
   * Attempts a delivery directly if it may be sent now, and reports how it ended.
   *
   * @param left called before that, when the attempt is no longer in flight.
   */
  const attempt = (
    direct: DirectDelivery,
    inFlightWork: InFlight<Broker | Facts>,
    left: () => void
  ) => {
    const { body, delivery, uncommitted } = direct
    const endpoint = readyFor(direct)
    if (endpoint === undefined) {
      left()
      return leaveUntried(direct)
    }
    direct.begun()
    let end: DirectEnd = unknown
    const held = {
      delivery,
      body,
      place: { stream: names.events, seq: delivery.eventSeq, at: delivery.eventAt }
    }
    const attempted = directDeliveries.begin(delivery)
    const work = inFlightWork.begin(
      () => {
        directDeliveries.leave(attempted)
        left()
        direct.ended(end)
      },
      (defect) =>
        Effect.logError("a delivery met a defect as its event was routed", {
          seq: delivery.eventSeq,
          endpoint: delivery.endpoint,
          defect
        })
    )

    const succeed = (sent: AttemptOutcome) => {
      const tell = (plan?: Plan) => deliveredFact(held, untried, sent, worker, plan)
      const stored = (fact: Fact, seq: number) => {
        settled.stored(seq)
        directDeliveries.add(endpoint.key, delivery)
        end = delivered
        reached("outcome-stored")
        return logsDeliveries ? logFact(fact) : Effect.void
      }
      // A former owner stores the plan separately: another router's plan may count.
      const plan = fence.holds() ? uncommitted?.piggyback() : undefined
      if (uncommitted !== undefined && plan !== undefined) {
        const whole = tell(plan)
        const again = () => appendWithPlan(tell(), whole, uncommitted)
        successes.appendPlainly(work, { fact: whole, id: uncommitted.id, again, stored })
      } else if (uncommitted === undefined || uncommitted.isCommitted)
        successes.appendPlainly(work, { fact: tell(), id: nextId(), stored })
      else {
        const fact = tell()
        const mark = settled.open()
        work.continueInFiber(
          Effect.ensuring(
            Effect.flatMap(appendBeside(fact, uncommitted, successes.append), ({ fact, seq }) =>
              stored(fact, seq)
            ),
            Effect.sync(() => settled.close(mark))
          )
        )
      }
    }

    sendOnce(held, endpoint, work, (sent) => {
      reached("answered")
      options.answered(endpoint, delivery, sent, untried)
      if (sent.verdict === "delivered") succeed(sent)
      else
        work.continueInFiber(
          fail(held, endpoint, sent, uncommitted, (failed) => {
            end = failed
          })
        )
    })
  }

  /**
   * Appends a success together with its plan, where the history may hold it already. If the history
   * holds another fact for the plan, the success is appended without it.
   */
  const appendWithPlan = Effect.fnUntraced(function* (
    fact: Fact,
    whole: Fact,
    uncommitted: UncommittedPlan
  ) {
    const { id, safeRepublishMs } = uncommitted
    const stored =
      safeRepublishMs > 0
        ? yield* Effect.option(facts.appendWhile(fence.stillOwner, safeRepublishMs, whole, id))
        : Option.none()
    if (Option.isSome(stored) && stored.value !== undefined) {
      const { duplicate, seq } = stored.value
      if (!duplicate) return { fact: whole, seq }
      uncommitted.adoptExisting(seq)
    }
    return yield* appendBeside(fact, uncommitted, successes.append)
  })

  /**
   * Appends an attempt's fact once the history holds a plan, unless the plan's fact is this
   * outcome.
   */
  const appendBeside = Effect.fnUntraced(function* (
    fact: Fact,
    uncommitted: UncommittedPlan,
    append: Successes["append"]
  ) {
    const seq = yield* uncommitted.committed
    if (!uncommitted.isUnsure) return yield* append(fact, nextId())
    const planned = yield* readSurely(seq)
    if (Option.exists(planned, (there) => isSame(there, fact))) {
      uncommitted.confirmOwn()
      return { fact, seq }
    }
    return yield* append(beside(fact, planned), nextId())
  })

  const appendFailure: Successes["append"] = (fact, id) =>
    Effect.map(facts.append(fact, id), ({ seq }) => ({ fact, seq }))

  /** @param told called once the history holds the failure. */
  const fail = Effect.fnUntraced(function* (
    held: Pick<AckHandle, "delivery" | "place">,
    endpoint: LiveEndpoint,
    sent: AttemptOutcome,
    uncommitted: UncommittedPlan | undefined,
    told: (end: DirectEnd) => void
  ) {
    yield* settlement.asOwner
    const { fact, progress, step } = yield* judgeFailure(held, untried, sent, endpoint, worker)
    const ends = step._tag === "Dead" ? step.reason : undefined
    const whole = ends === undefined ? fact : { ...fact, reason: ends }
    const append =
      uncommitted === undefined || uncommitted.isCommitted
        ? appendFailure(whole, nextId())
        : appendBeside(whole, uncommitted, appendFailure)
    settled.stored((yield* append).seq)
    reached("outcome-stored")
    const known = ends === undefined ? progress : { ...progress, ends }
    directDeliveries.failed(held.delivery, known)
    told({ _tag: "Failed", progress: known })
    yield* logFact(whole)
    yield* disableWhereGone(held, endpoint, sent, worker)
  })

  const sendOnce = (
    held: Pick<AckHandle, "body" | "delivery">,
    endpoint: LiveEndpoint,
    work: InFlightWork<Broker | Facts>,
    done: (sent: AttemptOutcome) => void
  ) =>
    work.step(() => {
      const running = startSending(sender, held, endpoint, 1, (sent) => work.step(() => done(sent)))
      work.onCancel(() => running.interrupt())
    })

  return { attempt }
})
