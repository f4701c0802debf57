import { execFile } from "node:child_process"
import { globSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { promisify } from "node:util"
import { Client } from "pg"
import {
  freePort,
  programPath,
  removeServerFolder,
  type ServerProcess,
  serverFolder,
  serverUser,
  startServer
} from "./server-process.ts"

// Debian keeps the programs of each version in a folder of its own, outside of PATH.
const folders = globSync("/usr/lib/postgresql/*/bin").sort().reverse()
const programs = {
  initdb: programPath("initdb", folders),
  postgres: programPath("postgres", folders)
}

/** Why tests with PostgreSQL cannot run on this machine; undefined if they can. */
export const withoutPostgres =
  programs.initdb !== undefined && programs.postgres !== undefined
    ? undefined
    : "PostgreSQL is not installed here: apt-get install postgresql"

export interface PostgresServer {
  /** For `pg` and `postgres`. The user postgres is a superuser without a password. */
  readonly url: string
  readonly port: number
  /** Kills the server like a crash. What it committed remains. Its clients' connections break. */
  readonly kill9: () => Promise<void>
  /** Starts the server again at the same port, after `kill9` or by a quick shutdown. */
  readonly restart: () => Promise<void>
  /** Makes an empty database of that name. Returns its URL. */
  readonly database: (name: string) => Promise<string>
  /** Stops the server for good and removes its folder. */
  readonly stop: () => Promise<void>
}

/**
 * Runs a PostgreSQL on a free port of 127.0.0.1, with its data in a temporary folder.
 *
 * @param settings lines of postgresql.conf, such as `{ wal_level: "logical" }`. What is committed is
 * not synced to the disk, unless `fsync` is `on`: it survives the death of the server, not that of
 * the machine.
 */
export const startPostgres = async (
  settings: Readonly<Record<string, string>> = {}
): Promise<PostgresServer> => {
  const { initdb, postgres } = programs
  if (initdb === undefined || postgres === undefined) throw new Error(withoutPostgres)
  const user = serverUser("postgres")
  const folder = serverFolder("postgres", user)
  const data = join(folder, "data")
  await promisify(execFile)(
    initdb,
    ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
    { ...user, cwd: folder }
  )
  const port = await freePort()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const lines = {
    ...{ listen_addresses: "127.0.0.1", unix_socket_directories: "", port: `${port}` },
    ...{ fsync: "off", shared_buffers: "32MB", max_connections: "200" },
    ...settings
  }

  const ask = async (query: string): Promise<void> => {
    const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 })
    client.on("error", () => undefined)
    try {
      await client.connect()
      await client.query(query)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
  const answers = () =>
    ask("select 1").then(
      () => true,
      () => false
    )
  const start = () =>
    startServer(
      postgres,
      ["-D", data, ...Object.entries(lines).flatMap(([name, value]) => ["-c", `${name}=${value}`])],
      { user, cwd: folder },
      answers
    )

  let server: ServerProcess = await start()

  return {
    url,
    port,
    kill9: () => server.end("SIGKILL"),
    restart: async () => {
      await server.end("SIGINT")
      const deadline = Date.now() + 30_000
      for (;;) {
        try {
          server = await start()
          return
        } catch (error) {
          // The processes of a server that was killed hold its memory until they have noticed.
          if (!`${error}`.includes("shared memory") || Date.now() > deadline) throw error
          await setTimeout(50)
        }
      }
    },
    database: async (name) => {
      await ask(`create database ${name}`)
      return `postgres://postgres@127.0.0.1:${port}/${name}`
    },
    stop: async () => {
      await server.end("SIGINT")
      removeServerFolder(folder)
    }
  }
}
