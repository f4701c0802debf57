import { createConnection } from "node:net"
import {
  freePort,
  programPath,
  removeServerFolder,
  serverFolder,
  startServer
} from "./server-process.ts"

const program = programPath("redis-server")

/** Why tests with Redis cannot run on this machine; undefined if they can. */
export const withoutRedis =
  program === undefined ? "Redis is not installed here: apt-get install redis-server" : undefined

export interface RedisServer {
  readonly port: number
  readonly stop: () => Promise<void>
}

const answersPing = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection(port, "127.0.0.1")
    socket.once("connect", () => socket.write("PING\r\n"))
    socket.once("data", (data) => {
      socket.destroy()
      resolve(`${data}`.startsWith("+PONG"))
    })
    socket.once("error", () => resolve(false))
  })

/** Runs a Redis on a free port of 127.0.0.1 that stores nothing on the disk. */
export const startRedis = async (): Promise<RedisServer> => {
  if (program === undefined) throw new Error(withoutRedis)
  const folder = serverFolder("redis")
  const port = await freePort()
  const running = await startServer(
    program,
    ["--port", `${port}`, "--bind", "127.0.0.1", "--save", "", "--dir", folder],
    { user: undefined, cwd: folder },
    () => answersPing(port)
  )
  return {
    port,
    stop: async () => {
      await running.end("SIGTERM")
      removeServerFolder(folder)
    }
  }
}
