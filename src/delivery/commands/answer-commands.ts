import type { Fiber } from "effect"
import { Cause, Effect, FiberSet, Option, Schema } from "effect"
import { Broker } from "../../broker/broker.ts"
import type {
  CommandPart,
  Retried,
  RetryNow,
  SendTest,
  TestExchange
} from "../../cluster/command.ts"
import { Command, Withdrawal } from "../../cluster/command.ts"
import type { Facts } from "../../history/facts.ts"
import { Metrics } from "../../metrics/worker-metrics.ts"
import { Shares } from "../../policy/shares.ts"
import { timers } from "../../time/timers.ts"
import { RememberedRetries } from "./remembered-retries.ts"

/**
 * Maximum commands that are carried out at the same time, half of them of one tenant; further ones
 * are refused. A test of a silent receiver takes two minutes.
 */
const maxConcurrentCommands = 8
const tooMany =
  "too many tests and retries of the tenant are under way in its partition: try again when some have ended"
/** Interval of the parts of an answer that say that the owner is at work, ms. */
const partEveryMs = 1_000

interface CommandOptions {
  readonly partition: number
  readonly worker: string
  /** True while this worker owns the partition. */
  readonly holds: () => boolean
  /** @param onProgress called with what was done so far. */
  readonly retryNow: (
    command: RetryNow,
    onProgress: (progress: Retried) => void
  ) => Effect.Effect<Retried, unknown, Broker | Facts>
  /** Returns undefined for an endpoint that is not known. */
  readonly sendTest: (command: SendTest) => Effect.Effect<TestExchange> | undefined
}

const decode = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Union([Command, Withdrawal]))
)

/** What a part of an answer says of the command. */
type Result = Omit<CommandPart, "isLast" | "part" | "v" | "worker">

/** Carries a command out. */
const resultOf = (
  { retryNow, sendTest }: CommandOptions,
  remembered: RememberedRetries,
  does: Command["does"],
  onProgress: (progress: Retried) => void
): Effect.Effect<Result, unknown, Broker | Facts> => {
  if (does._tag === "RetryNow")
    return Effect.map(remembered.once(does, retryNow(does, onProgress)), (retried) => ({ retried }))
  const sent = sendTest(does)
  return sent === undefined
    ? Effect.succeed({ problem: "it does not know the endpoint yet: try again in a second" })
    : Effect.map(sent, (tested) => ({ tested }))
}

/** Says from time to time how far a command is, until the answer is complete. */
class CommandAnswer {
  readonly #say: (part: CommandPart) => void
  readonly #worker: string
  #part = 0
  latest: Result = {}

  constructor(worker: string, say: (part: CommandPart) => void) {
    this.#worker = worker
    this.#say = say
  }

  send(result: Result, isLast: boolean): void {
    this.#say({ v: 1, worker: this.#worker, part: this.#part++, isLast, ...result })
  }
}

/**
 * Carries out commands about a partition and answers them, for as long as the scope lives. A command
 * that its owner does not finish is not repeated by the next one: who gave it hears nothing more,
 * and gives it again.
 */
export const answerCommands = Effect.fnUntraced(function* (options: CommandOptions) {
  const broker = yield* Broker
  const { listen, names, say } = broker
  const run = yield* FiberSet.makeRuntime<Broker | Facts>()
  const metrics = yield* Metrics
  const shares = new Shares(maxConcurrentCommands)
  const remembered = new RememberedRetries()
  /** What is carried out, by where it is answered. */
  const running = new Map<string, Fiber.Fiber<void>>()

  const perform = ({ by, does }: Command, to: string): Fiber.Fiber<void> => {
    const answer = new CommandAnswer(options.worker, (part) => say(to, JSON.stringify(part)))
    answer.send({}, false)
    const beat = timers.every(partEveryMs, () => answer.send(answer.latest, false))
    const work = Effect.andThen(
      Effect.logInfo("carries out a command", {
        ...{ command: does._tag, tenant: does.tenant, endpoint: does.endpoint, by }
      }),
      resultOf(options, remembered, does, (progress) => {
        answer.latest = { retried: progress }
      })
    )
    return run(
      work.pipe(
        Effect.catchCause((cause) =>
          Cause.hasInterrupts(cause)
            ? Effect.interrupt
            : Effect.as(Effect.logWarning("a command failed", cause), {
                ...answer.latest,
                problem: String(Cause.squash(cause))
              } satisfies Result)
        ),
        Effect.map((result) => answer.send(result, true)),
        Effect.ensuring(Effect.sync(() => timers.cancel(beat)))
      )
    )
  }

  const begin = (command: Command, to: string): void => {
    const { tenant } = command.does
    if (!shares.take(tenant)) {
      metrics.refusedCommand()
      const busy = new CommandAnswer(options.worker, (part) => say(to, JSON.stringify(part)))
      busy.send({ problem: tooMany }, true)
      return
    }
    const fiber = perform(command, to)
    running.set(to, fiber)
    fiber.addObserver(() => {
      running.delete(to)
      shares.give(tenant)
    })
  }

  const receive = (text: string, to: string | undefined): void => {
    const command = Option.getOrUndefined(decode(text))
    if (command === undefined) return
    if ("withdraws" in command) running.get(command.withdraws)?.interruptUnsafe()
    else if (to !== undefined && options.holds()) begin(command, to)
  }

  yield* Effect.acquireRelease(
    Effect.sync(() =>
      listen(names.subjects.command(options.partition), (message) =>
        receive(message.string(), message.reply)
      )
    ),
    (unlisten) => Effect.sync(unlisten)
  )
})
