import { Context, Effect, Fiber, Layer } from "effect"
import type { TestContext } from "vitest"
import type { Broker } from "../../src/broker/broker.ts"
import { natsClients } from "../../src/broker/clients.ts"

/** What a story is stopped early for, ms: to read what its streams hold, and to report that. */
const marginMs = 3_000
/** How long the broker is asked for that, ms. */
const readMs = 2_000
/** Maximum subjects that are shown of one stream. */
const maxSubjects = 30

/** Connections to the installations of a story, in the order in which they were first used. */
type Places = Map<string, Layer.Layer<Broker, unknown>>

const StoryPlaces = Context.Reference<Places | undefined>("StoryPlaces", {
  defaultValue: () => undefined
})

/** Notes an installation that the story at hand uses. */
export const notePlace = (prefix: string, broker: Layer.Layer<Broker, unknown>) =>
  Effect.map(StoryPlaces, (places) => void places?.set(prefix, broker))

/** Subjects end with an id or with a name: ids are counted together. */
const groupOf = (subject: string): string => subject.replace(/\.[^.]*\d{6}[^.]*$/, ".*")

const groupsOf = (subjects: Readonly<Record<string, number>>): ReadonlyArray<string> => {
  const groups = new Map<string, number>()
  for (const [subject, count] of Object.entries(subjects)) {
    const group = groupOf(subject)
    groups.set(group, (groups.get(group) ?? 0) + count)
  }
  const lines = [...groups].sort(([, a], [, b]) => b - a)
  const shown = lines.slice(0, maxSubjects).map(([group, count]) => `    ${count} ${group}`)
  const more = lines.length - shown.length
  return more > 0 ? [...shown, `    and ${more} subjects more`] : shown
}

/** Tells what the streams of an installation hold, by subject, and what consumers have not done. */
export const holdings = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const prefix = names.dead.slice(0, -"DEAD".length)
  const all = yield* ask("list", () => jsm.streams.names().next())
  const told = yield* Effect.forEach(
    all.filter((name) => name.startsWith(prefix)).sort(),
    Effect.fnUntraced(function* (name) {
      const { config, state } = yield* ask("look", () =>
        jsm.streams.info(name, { subjects_filter: ">" })
      )
      const consumers = yield* ask("look", () => jsm.consumers.list(name).next())
      const limit = config.max_bytes > 0 ? ` of ${config.max_bytes}` : ""
      return [
        `  ${name}: ${state.messages} messages of ${state.last_seq} ever, ${state.bytes}${limit} bytes`,
        ...consumers
          .filter(({ config: { durable_name } }) => durable_name !== undefined)
          .map(
            ({ name: consumer, num_ack_pending, num_pending }) =>
              `    consumer ${consumer}: ${num_pending} to deliver, ${num_ack_pending} to acknowledge`
          ),
        ...groupsOf(state.subjects ?? {})
      ]
    }),
    { concurrency: 8 }
  )
  return told.flat().join("\n")
})

const tell = ([prefix, broker]: readonly [string, Layer.Layer<Broker, unknown>]) =>
  holdings.pipe(
    Effect.provide(Layer.fresh(broker)),
    Effect.timeout(readMs),
    Effect.match({
      onSuccess: (text) => `${prefix} then:\n${text}`,
      onFailure: (error) => `${prefix}: cannot be read (${String(error)})`
    })
  )

/**
 * Runs a story, and fails it shortly before its test times out, with what the streams of its
 * installations hold then: a story that stands still says what it waits for.
 */
export const explained = <A, E>(
  { onTestFinished, task }: Pick<TestContext, "onTestFinished" | "task">,
  story: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    const places: Places = new Map()
    const limitMs = Math.max(task.timeout - marginMs, task.timeout / 2)
    const running = yield* Effect.forkDetach(Effect.provideService(story, StoryPlaces, places))
    const overdue = Effect.gen(function* () {
      yield* Effect.sleep(limitMs)
      const told = yield* Effect.forEach(places, tell, { concurrency: 4 })
      // Its workers take a while to stop, and the test's time is over.
      onTestFinished(() => Effect.runPromise(Fiber.interrupt(running)))
      const after = `The story has not ended after ${limitMs / 1_000} s.`
      return yield* Effect.die(new Error([after, ...told].join("\n")))
    })
    return yield* Effect.raceFirst(Fiber.join(running), overdue).pipe(
      Effect.onInterrupt(() => Fiber.interrupt(running))
    )
  })
