import { Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import { PublishError } from "../../broker/publication.ts"
import { lookAtIntake } from "../look-at-intake.ts"
import { NotStored } from "../store-incoming.ts"
import type { Admission } from "./admission.ts"

/** True for a refusal that is about one event, or one tenant's quarantine: others may be stored. */
const isOfOne = (error: unknown): boolean =>
  error instanceof NotStored
    ? error.reason === "invalid" || error.reason === "too-large"
    : error instanceof PublishError && error.reason === "rejected"

const isSilence = (error: unknown): boolean =>
  error instanceof NotStored ? error.reason === "unanswered" : !isOfOne(error)

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * Knows whether the broker stores what comes in. Providers may send nothing for hours, and a proxy
 * that asks whether the gateway is ready sends it nothing until it is: so the gateway itself tries
 * again what was not stored, or asks whether the stream answers.
 */
export class StoreWatch {
  readonly #admission: Pick<Admission, "answered" | "problem" | "unanswered">
  readonly #silentMs: number
  /** What was not stored last. */
  #unstored: Effect.Effect<unknown, unknown, Broker> | undefined

  /** @param silentMs how long an answer is waited for, ms. */
  constructor(admission: Pick<Admission, "answered" | "problem" | "unanswered">, silentMs: number) {
    this.#admission = admission
    this.#silentMs = silentMs
  }

  /** Stores something, and notes whether the broker does. Fails if it does not answer in time. */
  within<A, E, R>(store: Effect.Effect<A, E, R>): Effect.Effect<A, E | NotStored, R> {
    return store.pipe(
      Effect.timeoutOrElse({
        duration: this.#silentMs,
        orElse: () =>
          Effect.fail(new NotStored({ reason: "unanswered", text: "the broker does not answer" }))
      }),
      Effect.tap(() => Effect.sync(() => this.#admission.answered())),
      Effect.tapError((error) =>
        Effect.sync(() => {
          if (isSilence(error)) this.#admission.unanswered(textOf(error))
          else this.#admission.answered(isOfOne(error) ? undefined : textOf(error))
        })
      )
    )
  }

  /** Keeps what takes a request if the broker does not store it: `check` tries it again. */
  kept<A, E>(taking: Effect.Effect<A, E, Broker>): Effect.Effect<A, E, Broker> {
    return Effect.onExit(taking, ({ _tag }) =>
      Effect.sync(() => {
        if (this.#admission.problem === undefined) this.#unstored = undefined
        else if (_tag === "Failure") this.#unstored = taking
      })
    )
  }

  /** Tries again what was not stored last. If there is nothing, asks whether the stream answers. */
  readonly check: Effect.Effect<void, never, Broker> = Effect.suspend(() => {
    const unstored = this.#unstored
    return unstored === undefined ? this.#look : Effect.ignore(this.kept(unstored))
  })

  readonly #look = Effect.gen({ self: this }, function* () {
    const state = yield* lookAtIntake(this.#silentMs)
    if (state.kind === "answers") this.#admission.answered()
    else if (state.kind === "silent") this.#admission.unanswered(state.problem)
    else if (state.kind === "missing") this.#admission.answered(state.problem)
  })
}
