import { Cause, Effect, Schema, Semaphore } from "effect"
import type { Driver, DriverSession, Parameter, Row } from "./drivers.ts"

/** How long connecting, and one statement, may take, ms. */
const connectMs = 10_000
const statementMs = 30_000
/** The server ends a statement before this process takes its connection for broken. */
const answerMs = statementMs + 5_000

/** The database did not do what it was asked for. */
export class DatabaseError extends Schema.TaggedError<DatabaseError>()("DatabaseError", {
  operation: Schema.String,
  detail: Schema.String,
  /** Its SQLSTATE; empty where the database has not answered. */
  code: Schema.String
}) {
  override get message() {
    return `the database did not ${this.operation}: ${this.detail}`
  }
}

/** Classes of SQLSTATE that do not pass by waiting: wrong login, no such database, wrong statement. */
const lasting = /^(28|3D|3F|42|0A)/

/** True for an error that waiting does not mend. */
export const isLasting = ({ code }: DatabaseError): boolean => lasting.test(code)

const detailOf = (error: unknown): string => {
  // Several addresses were tried: the error of each is in it, and the message is empty.
  if (error instanceof AggregateError && error.message === "")
    return error.errors.map(detailOf).join(", ")
  return error instanceof Error ? error.message : String(error)
}

const codeOf = (error: unknown): string => {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  // Codes of the system, such as ECONNREFUSED, are longer.
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : ""
}

const errorOf = (operation: string) => (error: unknown) =>
  new DatabaseError({ operation, detail: detailOf(error), code: codeOf(error) })

/** One session of a database. */
export interface Session {
  /** @param operation for the error, after "the database did not". */
  readonly query: (
    operation: string,
    text: string,
    parameters?: ReadonlyArray<Parameter>
  ) => Effect.Effect<ReadonlyArray<Row>, DatabaseError>
  /** Calls `heard` for each notice of a channel. */
  readonly listen: (channel: string, heard: () => void) => Effect.Effect<void, DatabaseError>
}

const sessionOver = (session: DriverSession, brokenBy: () => string | undefined): Session => {
  const oneByOne = Semaphore.makeUnsafe(1)
  const within = <A>(operation: string, ask: () => Promise<A>) =>
    Effect.suspend(() => {
      const why = brokenBy()
      return why === undefined
        ? Effect.tryPromise({ try: ask, catch: errorOf(operation) })
        : Effect.fail(new DatabaseError({ operation, detail: why, code: "" }))
    }).pipe(
      Effect.timeout(answerMs),
      Effect.catchIf(Cause.isTimeoutError, () =>
        Effect.fail(new DatabaseError({ operation, detail: "it does not answer", code: "" }))
      ),
      oneByOne.withPermit
    )
  return {
    query: (operation, text, parameters = []) =>
      within(operation, () => session.query(text, parameters)),
    listen: (channel, heard) =>
      Effect.asVoid(within("listen for notices", () => session.listen(channel, heard)))
  }
}

/** What holds for all statements of a session. */
const settings: ReadonlyArray<readonly [name: string, value: number | "off"]> = [
  ["statement_timeout", statementMs],
  // A server that never hears that this machine is gone would keep its lock for hours.
  ["tcp_keepalives_idle", 5],
  ["tcp_keepalives_interval", 3],
  ["tcp_keepalives_count", 3],
  // Each statement has an index. Statistics of a table that fills and empties are often wrong.
  ["enable_seqscan", "off"],
  ["jit", "off"],
  // A policy that hides rows would make it look as if none waits: statements fail instead.
  ["row_security", "off"]
]

/**
 * Opens a session for as long as the scope lives. What is asked of it fails once its connection has
 * broken.
 *
 * @param onBroken called then.
 */
export const openSession = Effect.fnUntraced(function* (
  { open }: Driver,
  url: string,
  onBroken: () => void
) {
  let why: string | undefined
  let isOpen = true
  const broken = (reason: string) => {
    why ??= reason
    if (isOpen) onBroken()
  }
  const made = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () => open({ url, connectMs, broken }),
      catch: errorOf("take a connection")
    }),
    (session) =>
      Effect.suspend(() => {
        isOpen = false
        return Effect.promise(() => session.close().catch(() => undefined))
      }).pipe(Effect.timeoutOption(2_000))
  )
  const session = sessionOver(made, () => why)
  for (const [name, value] of settings)
    yield* session.query("take a setting", `set ${name} = ${value}`)
  return session
})
