import { describe } from "@effect/vitest"
import { connect, headers } from "@nats-io/transport-node"
import { Effect } from "effect"
import { Broker } from "../../src/broker/broker.ts"
import { type Client, httpClient, natsClient } from "../../src/client/client.ts"
import { startNatsService } from "../../src/service/nats-service.ts"
import { tellStory } from "../client/story.ts"
import { assertTold } from "../client/told.ts"
import { startDrivenConsole } from "../kit/driven-console.ts"
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
})
