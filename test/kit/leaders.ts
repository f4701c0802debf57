import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { eventually } from "./engine.ts"
import type { TestCluster } from "./nats-server.ts"

/** The server that leads a stream, once there is one. */
export const leaderIn = Effect.fnUntraced(function* (cluster: TestCluster, stream: string) {
  const { ask, jsm } = yield* natsClients
  const look = ask("look who leads", () => jsm.streams.info(stream))
  const name = Effect.map(Effect.eventually(look), ({ cluster }) => cluster?.leader ?? "")
  const leader = cluster.servers.get(yield* eventually(name, (name) => cluster.servers.has(name)))
  if (leader === undefined) throw new Error(`nobody leads ${stream}`)
  return leader
})
