import { Effect } from "effect"
import type { AuditOptions } from "../../../history/audit/audit.ts"
import type { Books } from "../../../history/audit/books.ts"
import type { StreamReading } from "../../../history/audit/stream-reading.ts"
import { showingProgress } from "../../terminal/reading-progress.ts"

const left = ({ next, to }: StreamReading): number => Math.max(0, to - next + 1)

const readIn = ({ events, history }: Books) => {
  const done = events.messages + history.messages
  return { done, all: done + left(events) + left(history) }
}

/** Runs an audit and shows its reading progress. */
export const withProgress = <A, E, R>(
  options: AuditOptions,
  run: (options: AuditOptions) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let books: Books | undefined
    const watched = run({
      ...options,
      onBegin: (begun) => {
        books = begun
      }
    })
    return showingProgress(watched, () => (books === undefined ? undefined : readIn(books)))
  })
