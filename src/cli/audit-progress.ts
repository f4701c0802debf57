import { Effect } from "effect"
import type { AuditOptions } from "../history/audit/audit.ts"
import type { Books, Reading } from "../history/audit/books.ts"
import { countText } from "./figures.ts"
import { barLine } from "./repartition-bar.ts"
import { cutTo } from "./screen.ts"
import { remark } from "./terminal.ts"

/** Between two drawings, and between two lines where there is no terminal, ms. */
const onTerminal = 200
const elsewhere = 10_000

const done = ({ events, history }: Books): number => events.messages + history.messages
const left = ({ next, to }: Reading): number => Math.max(0, to - next + 1)
const all = (books: Books): number => done(books) + left(books.events) + left(books.history)

/** Runs an audit and shows how far its reading is: a bar on a terminal, else a line now and then. */
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
    const show = process.stderr.isTTY ? bar(() => books) : lines(() => books)
    return Effect.raceFirst(watched, show)
  })

const lines = (look: () => Books | undefined) =>
  Effect.forever(
    Effect.delay(
      Effect.suspend(() => {
        const books = look()
        return books === undefined
          ? Effect.void
          : remark(`read ${countText(done(books))} of ${countText(all(books))} messages`)
      }),
      elsewhere
    )
  )

const erase = "\r\u001b[2K"

const bar = (look: () => Books | undefined) => {
  const draw = Effect.sync(() => {
    const books = look()
    if (books === undefined) return
    const line = barLine(done(books), all(books), "messages read")
    process.stderr.write(`${erase}${cutTo((process.stderr.columns ?? 80) - 1, line)}`)
  })
  return Effect.ensuring(
    Effect.forever(Effect.delay(draw, onTerminal)),
    Effect.sync(() => void process.stderr.write(erase))
  )
}
