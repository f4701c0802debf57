import { assert, describe } from "@effect/vitest"
import { connect, headers } from "@nats-io/transport-node"
import { Effect } from "effect"
import { apiDocument } from "../../src/api/document.ts"
import { Broker } from "../../src/broker/broker.ts"
import { type Client, httpClient, natsClient } from "../../src/client/client.ts"
import { operations } from "../../src/client/generated/operations.ts"
import type { Described } from "../../src/client/operation.ts"
import { startNatsService } from "../../src/service/nats-service.ts"
import { everyCall } from "../client/every-call.ts"
import { tellStory } from "../client/story.ts"
import { assertTold } from "../client/told.ts"
import { fillQuarantine, startDrivenConsole } from "../kit/driven-console.ts"
import { importTool } from "../kit/openapi-tools.ts"
import { onServer } from "../kit/scenario.ts"

const { scenario, server } = onServer()

const tenant = "acme"

/** What a client asks over: HTTP, or the program's own connection. */
const overs = {
  HTTP: () =>
    Effect.map(startDrivenConsole(server().url), (console) => ({
      console,
      petrel: httpClient({ url: console.url, token: console.token, tenant })
    })),
  NATS: () =>
    Effect.gen(function* () {
      const console = yield* startDrivenConsole(server().url)
      yield* startNatsService(console.app, { refused: console.refused })
      const connection = yield* Effect.acquireRelease(
        Effect.promise(() => connect({ servers: server().url })),
        (connection) => Effect.promise(() => connection.close())
      )
      const { root } = (yield* Broker).names.subjects
      return { console, petrel: natsClient({ connection, headers, root, tenant }) }
    })
}

interface Ground {
  readonly groundAt: (
    url: string,
    token: string,
    receiver: string
  ) => (
    operation: { readonly path: string },
    isChanged: boolean
  ) => Promise<{
    readonly event: ReadonlyArray<string>
    readonly number: ReadonlyArray<string>
  }>
}

interface Checks {
  readonly checksOf: (
    document: unknown
  ) => (pointer: string) => (value: unknown) => string | undefined
  readonly pointerTo: (keys: ReadonlyArray<string>) => string
}

interface Answers {
  readonly responses: Readonly<Record<string, { readonly content?: object }>>
}

/** Resolves once the client follows failures. */
const connected = async (petrel: Client): Promise<void> => {
  const ended = new AbortController()
  const onConnected = () => ended.abort("connected")
  try {
    for await (const _ of petrel.live({}, { signal: ended.signal, onConnected }));
  } catch (error) {
    if (error !== "connected") throw error
  }
}

/** Returns what says why the answer of an operation is none that the document has, by ajv. */
const problemsBy = ({ checksOf, pointerTo }: Checks) => {
  const { paths } = apiDocument() as unknown as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Answers>>>>
  }
  const checkAt = checksOf(apiDocument())
  return (id: string, answer: unknown): string | undefined => {
    const { isBytes, method, path }: Described = operations[id as keyof typeof operations]
    if (isBytes === true || id === "deliveries.live") return undefined
    const asked = method.toLowerCase()
    const kind = "application/json"
    const right = Object.entries(paths[path]?.[asked]?.responses ?? {})
      .filter(([status, { content = {} }]) => status.startsWith("2") && kind in content)
      .map(([status]) =>
        checkAt(pointerTo(["paths", path, asked, "responses", status, "content", kind, "schema"]))(
          answer
        )
      )
    return right.length > 0 && right.includes(undefined)
      ? undefined
      : `not as documented: ${right.join("; ")}: ${JSON.stringify(answer)}`
  }
}

let made: Promise<ReturnType<typeof problemsBy>> | undefined
/** Made once: to compile the document's schemas takes a second. */
const problemOfAnswer = () => {
  made ??= importTool<Checks>("check.ts").then(problemsBy)
  return made
}

describe("a program with a client", () => {
  for (const [name, over] of Object.entries(overs))
    scenario(`adds endpoints, publishes, and looks after what became of it, over ${name}`, () =>
      Effect.gen(function* () {
        const {
          console: { receiver },
          petrel
        }: { console: Effect.Success<ReturnType<typeof startDrivenConsole>>; petrel: Client } =
          yield* over()
        const story = yield* Effect.promise(() =>
          tellStory(petrel, {
            ...{ receiver: receiver.url, prefix: "p" },
            isWell: async () => receiver.answer({ status: 200 })
          })
        )
        assertTold(story, "p")
      })
    )

  for (const [name, over] of Object.entries(overs))
    scenario(`makes every call once and gets what the OpenAPI document says, over ${name}`, () =>
      Effect.gen(function* () {
        const { console, petrel } = yield* over()
        yield* fillQuarantine
        const { groundAt } = yield* Effect.promise(() => importTool<Ground>("ground.ts"))
        const { receiver, token, url } = console
        const find = groundAt(url, token, receiver.url)
        const there = yield* Effect.promise(() => find({ path: "/{event}/dead-letters" }, true))
        const event = String(there.event[0])
        const groups = everyCall(petrel, {
          ...{ receiver: receiver.url, event },
          dead: there.number.map(Number)
        })
        const calls = new Map<string, () => Promise<unknown>>(
          Object.entries(groups).flatMap(([group, those]) =>
            Object.entries(those).map(([one, call]) => [`${group}.${one}`, call] as const)
          )
        )
        const published = { type: "invoice.paid", data: { n: 1 } }
        calls.set("events.publish", () => petrel.publish(published))
        calls.set("events.publishRaw", () =>
          petrel.publishRaw({ type: "other", body: "{}", contentType: "application/json" })
        )
        calls.set("deliveries.live", () => connected(petrel))
        assert.sameMembers([...calls.keys()], Object.keys(operations))
        const problemOf = yield* Effect.promise(problemOfAnswer)
        const wrong: Array<string> = []
        for (const [id, call] of calls) {
          const { insteadOverNats }: Described = operations[id as keyof typeof operations]
          const isOffered = name === "HTTP" || insteadOverNats === undefined
          const came = yield* Effect.promise(() =>
            call().then(
              (answer) => problemOf(id, answer),
              (error: unknown) => String(error)
            )
          )
          if (isOffered && came !== undefined) wrong.push(`${id}: ${came}`)
          if (!isOffered) assert.include(came, `${id} is not offered over NATS`)
        }
        assert.deepStrictEqual(wrong, [])
      })
    )
})
