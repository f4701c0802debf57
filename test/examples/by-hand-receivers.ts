import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { setTimeout } from "node:timers/promises"
import { promisify } from "node:util"
import mysql from "mysql2/promise"
import pg from "pg"
import { startMariadb, withoutMariadb } from "../kit/mariadb-server.ts"
import { startPostgres, withoutPostgres } from "../kit/postgres-server.ts"
import { freePort, removeServerFolder, serverFolder } from "../kit/server-process.ts"

const exec = promisify(execFile)
const sources = join(import.meta.dirname, "../../examples/receiver-by-hand")

/** A process of an example. */
export interface Program {
  readonly kill: (signal: NodeJS.Signals) => Promise<void>
}

type Row = Readonly<Record<string, unknown>>

/** A connection in whose transaction rows can be locked. */
export interface Session {
  readonly query: (sql: string) => Promise<ReadonlyArray<Row>>
  readonly end: () => Promise<void>
}

/** One example with its database, as the stories use it. */
export interface ByHand {
  readonly url: string
  readonly database: { readonly kill9: () => Promise<void>; readonly restart: () => Promise<void> }
  /** The table of webhooks, and what its columns of the key and of the body's bytes in hexadecimal digits are called. */
  readonly table: string
  readonly key: string
  readonly bodyHex: string
  readonly customers: string
  readonly query: (sql: string) => Promise<ReadonlyArray<Row>>
  readonly session: () => Promise<Session>
  /** Starts a worker with a short lease, short pauses, and three attempts. */
  readonly worker: () => Program
  /** Runs one of the example's commands: `dead`, `retry ID`, `prune`. Returns what it prints. */
  readonly command: (...words: ReadonlyArray<string>) => Promise<string>
  readonly stop: () => Promise<void>
}

interface Setting {
  readonly folder: string
  readonly env: NodeJS.ProcessEnv
}

const waitForPort = async (url: string, output: () => string): Promise<void> => {
  const deadline = Date.now() + 30_000
  for (;;) {
    try {
      await fetch(url)
      return
    } catch (error) {
      if (Date.now() > deadline)
        throw new Error(`${url} does not answer: ${output()}`, { cause: error })
      await setTimeout(50)
    }
  }
}

const run = ({ env, folder }: Setting, [command = "", ...args]: ReadonlyArray<string>) => {
  // A group of its own: servers of both languages have children, which a kill must reach.
  const child = spawn(command, args, { cwd: folder, env, stdio: "pipe", detached: true })
  const lines: Array<string> = []
  for (const stream of [child.stdout, child.stderr])
    createInterface(stream).on("line", (line) => lines.push(line))
  const kill = async (signal: NodeJS.Signals) => {
    if (isOver(child)) return
    const ended = once(child, "exit")
    process.kill(-(child.pid ?? 0), signal)
    await ended
  }
  return { kill, output: () => lines.slice(-40).join("\n") }
}

const isOver = (child: ChildProcess): boolean =>
  child.exitCode !== null || child.signalCode !== null

const limits = {
  WEBHOOK_MAX_ATTEMPTS: "3",
  WEBHOOK_BACKOFF_SECONDS: "0.2",
  WEBHOOK_LEASE_SECONDS: "2"
}

interface Parts {
  readonly database: ByHand["database"] & { readonly stop: () => Promise<void> }
  readonly setting: Setting
  readonly serve: (port: number) => ReadonlyArray<string>
  readonly path: string
  readonly manage: (words: ReadonlyArray<string>) => ReadonlyArray<string>
  readonly words: Pick<ByHand, "table" | "key" | "bodyHex" | "customers">
  readonly session: () => Promise<Session>
}

const started = async (parts: Parts): Promise<ByHand> => {
  const { database, manage, path, serve, session, setting, words } = parts
  const port = await freePort()
  const url = `http://127.0.0.1:${port}${path}`
  const server = run(setting, serve(port))
  const workers = new Set<Program>()
  await waitForPort(url, server.output)
  const query = async (sql: string) => {
    const one = await session()
    try {
      return await one.query(sql)
    } finally {
      await one.end()
    }
  }
  return {
    ...words,
    ...{ url, database, query, session },
    worker: () => {
      const worker = run(setting, manage(["work"]))
      workers.add(worker)
      return worker
    },
    command: async (...args) => {
      const [command = "", ...rest] = manage(args)
      return (await exec(command, rest, { cwd: setting.folder, env: setting.env })).stdout
    },
    stop: async () => {
      for (const one of [server, ...workers]) await one.kill("SIGKILL")
      await database.stop()
      removeServerFolder(setting.folder)
    }
  }
}

const copied = (name: string): string => {
  const folder = serverFolder(name)
  cpSync(join(sources, name), folder, { recursive: true })
  return folder
}

const answers = (command: string, ...args: ReadonlyArray<string>): boolean => {
  try {
    execFileSync(command, args, { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

/** Why the example cannot run on this machine; undefined if it can. */
export const withoutDjango =
  withoutPostgres ??
  (answers("python3", "-m", "venv", "--help")
    ? undefined
    : "Python has no venv: apt-get install python3-venv")

/** Installs Django into an environment of its own, and runs the example on a PostgreSQL. */
export const startDjango = async (secrets: string): Promise<ByHand> => {
  const folder = copied("django")
  const environment = join(folder, "environment")
  await exec("python3", ["-m", "venv", environment])
  const python = join(environment, "bin/python")
  await exec(python, ["-m", "pip", "install", "--quiet", "-r", "requirements.txt"], { cwd: folder })
  const database = await startPostgres()
  const url = await database.database("shop")
  const env = { ...process.env, ...limits, DATABASE_URL: url, WEBHOOK_SECRETS: secrets }
  await exec(python, ["manage.py", "migrate"], { cwd: folder, env })
  return started({
    ...{ database, setting: { folder, env }, path: "/webhooks/petrel" },
    serve: (port) => [python, "manage.py", "runserver", "--noreload", `127.0.0.1:${port}`],
    manage: (words) => [python, "manage.py", "webhooks", ...words],
    words: {
      ...{ table: "inbox_webhook", key: "key", customers: "inbox_customer" },
      bodyHex: "encode(body, 'hex')"
    },
    session: async () => {
      const client = new pg.Client({ connectionString: url })
      client.on("error", () => undefined)
      await client.connect()
      return { query: async (sql) => (await client.query(sql)).rows, end: () => client.end() }
    }
  })
}

const hasLaravel = answers(
  "php",
  "-r",
  "require 'Illuminate/autoload.php'; exit(extension_loaded('pdo_mysql') ? 0 : 1);"
)

/** Why the example cannot run on this machine; undefined if it can. */
export const withoutLaravel =
  withoutMariadb ??
  (hasLaravel
    ? undefined
    : "Laravel is not installed here: apt-get install php-laravel-framework php-mysql")

/** Runs the example on Debian's Laravel and on a MariaDB. */
export const startLaravel = async (secrets: string): Promise<ByHand> => {
  const folder = copied("laravel")
  const database = await startMariadb()
  const { url } = database
  const env = {
    ...{ ...process.env, ...limits, DATABASE_URL: url, WEBHOOK_SECRETS: secrets },
    PHP_CLI_SERVER_WORKERS: "8"
  }
  await exec("php", ["artisan", "migrate", "--force"], { cwd: folder, env })
  return started({
    ...{ database, setting: { folder, env }, path: "/api/webhooks/petrel" },
    serve: (port) => ["php", "-S", `127.0.0.1:${port}`, "public/index.php"],
    manage: ([command, ...rest]) => ["php", "artisan", `webhooks:${command}`, ...rest],
    words: {
      ...{ table: "webhooks", key: "event_key", customers: "customers" },
      bodyHex: "lower(hex(body))"
    },
    session: async () => {
      const connection = await mysql.createConnection({ uri: url, decimalNumbers: true })
      connection.on("error", () => undefined)
      return {
        query: async (sql) => {
          const [rows] = await connection.query(sql)
          return Array.isArray(rows) ? (rows as ReadonlyArray<Row>) : []
        },
        end: async () => connection.destroy()
      }
    }
  })
}
