import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { streamNotFound } from "../broker/broker-error.ts"
import { isUnanswered } from "../broker/keep-going.ts"

/** A subject that no message has: a look for it shows whether the stream answers. */
const noSubject = "none"

/** What a look at INTAKE has shown. */
export type IntakeState =
  | { readonly kind: "answers" }
  /** @property problem one sentence. */
  | { readonly kind: "silent" | "missing"; readonly problem: string }
  /** The broker does not let this user look, which says nothing of what it may store. */
  | { readonly kind: "hidden" }

/**
 * Asks the leader of INTAKE for a message. The answer shows whether the broker is there, and has the
 * stream, where nothing is to be stored just now.
 *
 * @param withinMs how long the answer is waited for, ms.
 */
export const lookAtIntake = Effect.fnUntraced(function* (withinMs: number) {
  const { names, readMessage } = yield* Broker
  const silent = { kind: "silent", problem: "the broker does not answer" } as const
  return yield* readMessage(`look at ${names.intake}`, names.intake, {
    last_by_subj: noSubject
  }).pipe(
    Effect.match({
      onSuccess: (): IntakeState => ({ kind: "answers" }),
      onFailure: (error): IntakeState =>
        error.code === streamNotFound
          ? { kind: "missing", problem: error.message }
          : isUnanswered(error)
            ? { kind: "silent", problem: error.message }
            : { kind: "hidden" }
    }),
    Effect.timeoutOrElse({ duration: withinMs, orElse: () => Effect.succeed(silent) })
  )
})
