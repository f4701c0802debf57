import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { createConnection } from "mysql2/promise"
import {
  freePort,
  programPath,
  removeServerFolder,
  type ServerProcess,
  serverFolder,
  serverUser,
  startServer
} from "./server-process.ts"

const programs = {
  install: programPath("mariadb-install-db"),
  server: programPath("mariadbd", ["/usr/sbin"])
}

/** Why tests with MariaDB cannot run on this machine; undefined if they can. */
export const withoutMariadb =
  programs.install !== undefined && programs.server !== undefined
    ? undefined
    : "MariaDB is not installed here: apt-get install mariadb-server"

export interface MariadbServer {
  /** For `mysql2`. Everyone may do everything. */
  readonly url: string
  /** Kills the server like a crash. What it committed remains. Its clients' connections break. */
  readonly kill9: () => Promise<void>
  /** Starts the server again at the same port, after `kill9` or by a usual shutdown. */
  readonly restart: () => Promise<void>
  /** Stops the server for good and removes its folder. */
  readonly stop: () => Promise<void>
}

/**
 * Runs a MariaDB on a free port of 127.0.0.1 with the empty database `shop`, in a temporary folder.
 *
 * @param timeZone the machine's, as in TZ.
 */
export const startMariadb = async ({
  timeZone
}: {
  readonly timeZone?: string
} = {}): Promise<MariadbServer> => {
  const { install, server } = programs
  if (install === undefined || server === undefined) throw new Error(withoutMariadb)
  const user = serverUser("mysql")
  const folder = serverFolder("mariadb", user)
  const data = join(folder, "data")
  const common = ["--no-defaults", `--datadir=${data}`]
  await promisify(execFile)(install, [...common, "--skip-test-db"], { ...user, cwd: folder })
  const port = await freePort()
  const url = `mysql://root@127.0.0.1:${port}`
  const answers = async (): Promise<boolean> => {
    try {
      const connection = await createConnection(url)
      await connection.query("create database if not exists shop")
      await connection.end()
      return true
    } catch {
      return false
    }
  }
  const start = () =>
    startServer(
      server,
      [
        ...common,
        ...["--bind-address=127.0.0.1", `--port=${port}`, `--socket=${join(folder, "socket")}`],
        // What is committed survives the death of the server, not that of the machine.
        ...["--skip-grant-tables", "--innodb-flush-log-at-trx-commit=2"],
        ...["--innodb-buffer-pool-size=64M", "--max-connections=200"]
      ],
      {
        user,
        cwd: folder,
        ...(timeZone !== undefined && { env: { ...process.env, TZ: timeZone } })
      },
      answers
    )
  let running: ServerProcess = await start()
  return {
    url: `${url}/shop`,
    kill9: () => running.end("SIGKILL"),
    restart: async () => {
      await running.end("SIGTERM")
      running = await start()
    },
    stop: async () => {
      await running.end("SIGTERM")
      removeServerFolder(folder)
    }
  }
}
