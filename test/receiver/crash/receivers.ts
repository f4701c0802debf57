import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"

/** A receiver process and its address. */
interface Running {
  readonly child: ChildProcess
  readonly url: string
}

export interface Receivers {
  /** The address of one of those that run. Waits for one where none does. */
  readonly pick: () => Promise<string>
  /** Kills one of those that run, whichever, and starts another in its place. False where none runs. */
  readonly kill: () => boolean
  /** Processes that ended by themselves, or by their own hand. */
  readonly ended: () => number
  readonly stop: () => Promise<void>
}

/**
 * Keeps receiver processes running: one that has ended is replaced.
 *
 * @param env of the first process of each place; its successors are not told when to kill themselves.
 */
export const runReceivers = async (
  count: number,
  env: Readonly<Record<string, string>>
): Promise<Receivers> => {
  const running = new Set<Running>()
  const children = new Set<ChildProcess>()
  const killed = new Set<ChildProcess>()
  let waiting: Array<() => void> = []
  let isStopping = false
  let ended = 0

  const start = async (own: Readonly<Record<string, string>>): Promise<void> => {
    const child = fork(join(import.meta.dirname, "receiver-process.ts"), {
      env: { ...process.env, ...own },
      stdio: ["ignore", "inherit", "inherit", "ipc"]
    })
    children.add(child)
    child.once("exit", () => {
      children.delete(child)
      for (const one of running) if (one.child === child) running.delete(one)
      if (isStopping) return
      if (!killed.has(child)) ended += 1
      const { PETREL_TEST_KILL_AT: _, ...rest } = own
      void start(rest)
    })
    const [port] = await Promise.race([once(child, "message"), once(child, "exit")])
    if (child.exitCode !== null || child.signalCode !== null) return
    running.add({ child, url: `http://127.0.0.1:${port}` })
    const told = waiting
    waiting = []
    for (const tell of told) tell()
  }

  await Promise.all(Array.from({ length: count }, () => start(env)))

  const pick = async (): Promise<string> => {
    const all = [...running]
    const one = all[Math.floor(Math.random() * all.length)]
    if (one !== undefined) return one.url
    await new Promise<void>((resolve) => waiting.push(resolve))
    return pick()
  }

  return {
    pick,
    kill: () => {
      const all = [...running]
      const one = all[Math.floor(Math.random() * all.length)]
      if (one === undefined) return false
      running.delete(one)
      killed.add(one.child)
      one.child.kill("SIGKILL")
      return true
    },
    ended: () => ended,
    stop: async () => {
      isStopping = true
      const exits = [...children].map((child) => once(child, "exit"))
      for (const child of children) child.kill("SIGKILL")
      await Promise.all(exits)
    }
  }
}
