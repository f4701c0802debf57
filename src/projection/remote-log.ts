import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { Invalid, Problem } from "../domain/problem.ts"
import { timers } from "../time/timers.ts"
import {
  AttemptPage,
  AttemptQuery,
  DeliveryLog,
  DeliveryLookup,
  EventPage,
  EventQuery,
  LoggedDeliveries,
  LogSums,
  LogUnavailable,
  ProjectionStatus,
  saidOf,
  Unavailable,
  unavailableOf
} from "./delivery-log.ts"
import { SumsQuery } from "./log-sums.ts"
import type { Projection, ProjectionOptions } from "./projection.ts"
import { startProjection } from "./projection.ts"

/** What is asked of a projection. */
const LogQuestion = Schema.Union([
  Schema.Struct({ ask: Schema.Literal("attempts"), query: AttemptQuery }),
  Schema.Struct({ ask: Schema.Literal("events"), query: EventQuery }),
  Schema.Struct({ ask: Schema.Literal("get"), lookup: DeliveryLookup }),
  Schema.Struct({ ask: Schema.Literal("sums"), query: SumsQuery }),
  Schema.Struct({ ask: Schema.Literal("status") }),
  Schema.Struct({ ask: Schema.Literal("rebuild") })
])
type LogQuestion = typeof LogQuestion.Type

/** What it answers. */
const LogAnswer = Schema.Union([
  Schema.Struct({ attempts: AttemptPage }),
  Schema.Struct({ events: EventPage }),
  Schema.Struct({ found: LoggedDeliveries }),
  Schema.Struct({ sums: LogSums }),
  Schema.Struct({ status: ProjectionStatus }),
  Schema.Struct({ rebuilding: Schema.Literal(true) }),
  Schema.Struct({ problems: Schema.Array(Problem) }),
  Unavailable
])
type LogAnswer = typeof LogAnswer.Type

/** A piece of an answer, which may be longer than a message. */
const Piece = Schema.Struct({
  from: Schema.String.annotateKey({
    description: "Of the projection that answers: there may be several."
  }),
  isLast: Schema.Boolean,
  text: Schema.String
})

/** Characters of a piece: with escapes in JSON it fits the smallest message of a broker, 64 KiB. */
const pieceLength = 16_384
/** How long a projection may take for the first piece, ms. */
const answerWithinMs = 2_000
/** How long another one may take, after one that cannot answer, ms. */
const betterWithinMs = 300

const decodeQuestion = Schema.decodeUnknownResult(Schema.fromJsonString(LogQuestion), {
  onExcessProperty: "error"
})
const decodeAnswer = Schema.decodeUnknownOption(Schema.fromJsonString(LogAnswer))
const decodePiece = Schema.decodeUnknownOption(Schema.fromJsonString(Piece))

const answerTo = (
  { log, rebuild }: Projection,
  question: LogQuestion
): Effect.Effect<LogAnswer, Invalid | LogUnavailable> => {
  switch (question.ask) {
    case "attempts":
      return Effect.map(log.findAttempts(question.query), (attempts) => ({ attempts }))
    case "events":
      return Effect.map(log.findEvents(question.query), (events) => ({ events }))
    case "get":
      return Effect.map(log.get(question.lookup), (found) => ({ found }))
    case "sums":
      return Effect.map(log.sums(question.query), (sums) => ({ sums }))
    case "status":
      return Effect.map(log.status, (status) => ({ status }))
    case "rebuild":
      return Effect.as(rebuild, { rebuilding: true })
  }
}

/** Answers questions to a projection of this process, until the scope ends. */
export const answerLog = Effect.fnUntraced(function* (projection: Projection) {
  const { listen, names, say } = yield* Broker
  const run = Effect.runForkWith(yield* Effect.context<never>())
  const from = crypto.randomUUID()
  const answer = (text: string): Effect.Effect<LogAnswer> => {
    const question = decodeQuestion(text)
    if (question._tag === "Failure")
      return Effect.succeed({ problems: [{ field: "", message: String(question.failure) }] })
    return answerTo(projection, question.success).pipe(
      Effect.catchTags({
        Invalid: ({ problems }) => Effect.succeed({ problems }),
        LogUnavailable: (error) => Effect.succeed(saidOf(error))
      })
    )
  }
  yield* Effect.acquireRelease(
    Effect.sync(() =>
      listen(names.subjects.projection, (message) => {
        const { reply } = message
        if (reply === undefined || reply === "") return
        run(
          Effect.map(answer(message.string()), (found) => {
            const text = JSON.stringify(found)
            for (let at = 0; at < text.length; at += pieceLength) {
              const isLast = at + pieceLength >= text.length
              say(reply, JSON.stringify({ from, isLast, text: text.slice(at, at + pieceLength) }))
            }
          })
        )
      })
    ),
    (unlisten) => Effect.sync(unlisten)
  )
})

const noProjection = new LogUnavailable({
  reason:
    "no projection runs, or the broker does not let its user receive what it is asked, as its log then says; `petrel console` runs one"
})
const noAnswer = new LogUnavailable({
  reason: `the projection has not answered within ${answerWithinMs / 1_000} s; it may be overloaded`
})
const unreadable = { unavailable: "the projection is of another version of Petrel" }
const otherVersion = new LogUnavailable({ reason: unreadable.unavailable })

/** True if another projection may know better. */
const isPoor = (answer: LogAnswer): boolean =>
  "unavailable" in answer || ("status" in answer && answer.status.state === "stopped")

/**
 * Asks whichever projection answers first, and waits a little for another one if that has stopped.
 * Fails with LogUnavailable if none runs or answers in time.
 */
const askProjection = Effect.fnUntraced(function* (question: LogQuestion) {
  const { inbox: newInbox, listen, names, say } = yield* Broker
  return yield* Effect.callback<LogAnswer, LogUnavailable>((resume) => {
    const inbox = newInbox()
    const texts = new Map<string, string>()
    let poor: LogAnswer | undefined
    const end = (answer: LogAnswer | LogUnavailable) => {
      timers.cancel(timer)
      unlisten()
      resume(answer instanceof LogUnavailable ? Effect.fail(answer) : Effect.succeed(answer))
    }
    let timer = timers.after(answerWithinMs, () => end(noAnswer))
    const unlisten = listen(inbox, (message) => {
      const text = message.string()
      // The broker answers with an empty message if nobody listens.
      if (text === "") return end(noProjection)
      const piece = Option.getOrUndefined(decodePiece(text))
      if (piece === undefined) return end(otherVersion)
      const whole = `${texts.get(piece.from) ?? ""}${piece.text}`
      texts.set(piece.from, whole)
      if (!piece.isLast) return
      const answer = Option.getOrElse(decodeAnswer(whole), (): LogAnswer => unreadable)
      if (!isPoor(answer)) return end(answer)
      if (poor !== undefined) return
      poor = answer
      timers.cancel(timer)
      timer = timers.after(betterWithinMs, () => end(answer))
    })
    say(names.subjects.projection, JSON.stringify(question), inbox)
    return Effect.sync(() => {
      timers.cancel(timer)
      unlisten()
    })
  })
})

const asked = Effect.fnUntraced(function* (question: LogQuestion) {
  const answer = yield* askProjection(question)
  if ("unavailable" in answer) return yield* unavailableOf(answer)
  if ("problems" in answer) return yield* new Invalid({ problems: answer.problems })
  return answer
})

/** Asks a running projection for a page of attempts. */
export const findAttemptsRemotely = Effect.fnUntraced(function* (query: AttemptQuery) {
  const answer = yield* asked({ ask: "attempts", query })
  return "attempts" in answer ? answer.attempts : yield* noProjection
})

/** Asks a running projection for a page of events. */
export const findEventsRemotely = Effect.fnUntraced(function* (query: EventQuery) {
  const answer = yield* asked({ ask: "events", query })
  return "events" in answer ? answer.events : yield* noProjection
})

/** Asks a running projection for the rounds of a delivery or of an event. */
export const getRemotely = Effect.fnUntraced(function* (lookup: DeliveryLookup) {
  const answer = yield* asked({ ask: "get", lookup })
  return "found" in answer ? answer.found : yield* noProjection
})

/** Asks a running projection for sums. */
export const sumRemotely = Effect.fnUntraced(function* (query: SumsQuery) {
  const answer = yield* asked({ ask: "sums", query })
  return "sums" in answer ? answer.sums : yield* noProjection
})

/** Asks a running projection how it does. */
export const remoteStatus = Effect.gen(function* () {
  const answer = yield* asked({ ask: "status" })
  return "status" in answer ? answer.status : yield* noProjection
})

/** Lets all running projections read the history again. */
export const rebuildRemotely = Effect.asVoid(asked({ ask: "rebuild" }))

/**
 * Runs a projection until the scope ends, and lets other processes ask it over NATS. Returns its log
 * for this process.
 */
export const serveProjection = Effect.fnUntraced(function* (options: ProjectionOptions) {
  const projection = yield* startProjection(options)
  yield* answerLog(projection)
  return DeliveryLog.of(projection.log)
})
