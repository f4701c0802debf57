/*
 * `npm run crash:receiver`: 10,000 events with 30% repeats from 8 senders, three receivers that are killed 30 times,
 * a PostgreSQL that is killed twice. Prints what came of it; exits with 1 if anything was lost, doubled or out of
 * order.
 */
import { startPostgres } from "../../kit/postgres-server.ts"
import { tellCrashStory } from "./story.ts"

const server = await startPostgres()
try {
  const result = await tellCrashStory(server, "crash", {
    ...{ events: 10_000, senders: 8, receivers: 3, kills: 30, databaseKills: 2, repeats: 0.3 }
  })
  console.log(JSON.stringify(result, null, 2))
  const { dead, doubled, lost, missing, outOfOrder } = result
  if (dead + doubled + lost + missing + outOfOrder !== 0) process.exitCode = 1
} finally {
  await server.stop()
}
