import { Effect } from "effect"
import { Broker } from "../broker/broker.ts"
import { timers } from "../time/timers.ts"

/** Time limits of an exchange, ms. */
interface AnswerTimeouts {
  /** Until the first part of the answer. */
  readonly first: number
  /** From one part to the next. */
  readonly next: number
}

/** What every part of an answer has. */
interface Part {
  /** Index of the part, from 0. */
  readonly part: number
  readonly isLast: boolean
}

/**
 * Asks whoever listens to a subject, and collects the parts of the answer, since an answer may be
 * longer than a message, or take its time. Returns undefined if nobody listens, or a part is late,
 * missing or unreadable.
 *
 * @param onPart called with each part as it comes.
 * @param onLeave returns what to say where the asker is interrupted, of where it was to be answered.
 */
export const askInParts = Effect.fnUntraced(function* <A extends Part>(
  subject: string,
  question: object,
  decode: (text: string) => A | undefined,
  timeouts: AnswerTimeouts,
  onPart: (part: A) => void = () => undefined,
  onLeave?: (inbox: string) => object
) {
  const { listen, say, inbox: newInbox } = yield* Broker
  return yield* Effect.callback<ReadonlyArray<A> | undefined>((resume) => {
    const inbox = newInbox()
    const parts: Array<A> = []
    let timer = timers.after(timeouts.first, () => end(undefined))
    const unlisten = listen(inbox, (message) => {
      const part = decode(message.string())
      // The broker answers with an empty message if nobody listens.
      if (part === undefined || part.part !== parts.length) return end(undefined)
      parts.push(part)
      onPart(part)
      if (part.isLast) return end(parts)
      timers.cancel(timer)
      timer = timers.after(timeouts.next, () => end(undefined))
    })
    const stop = () => {
      timers.cancel(timer)
      unlisten()
    }
    const end = (answer: ReadonlyArray<A> | undefined) => {
      stop()
      resume(Effect.succeed(answer))
    }
    say(subject, JSON.stringify(question), inbox)
    return Effect.sync(() => {
      stop()
      if (onLeave !== undefined) say(subject, JSON.stringify(onLeave(inbox)))
    })
  })
})
