import { execFile, execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { makeConditions } from "./conditions.ts"
import { removeServerFolder, serverFolder } from "./server-process.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Returns whether the repository has a commit: a shallow clone lacks most. */
export const hasCommit = (commit: string): boolean => {
  try {
    execFileSync("git", ["cat-file", "-e", `${commit}^{commit}`], { cwd: root, stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

/**
 * Checks an earlier commit out, with its own packages. Its command line runs in processes of their
 * own, on this Node.
 */
export const checkedOut = (commit: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const folder = serverFolder("commit")
      const run = promisify(execFile)
      await run("git", ["worktree", "add", "--detach", folder, commit], { cwd: root })
      await run("npm", ["ci", "--omit=dev"], { cwd: folder })
      return folder
    }),
    (folder) =>
      Effect.promise(async () => {
        await promisify(execFile)("git", ["worktree", "remove", "--force", folder], { cwd: root })
        removeServerFolder(folder)
      })
  ).pipe(
    Effect.map((folder) => {
      const program = `${folder}/src/cli/main.ts`
      return {
        /** Runs a command; returns its output. Fails where it exits with another code than 0. */
        command: (...args: ReadonlyArray<string>) =>
          Effect.promise(async () => {
            const { stdout } = await promisify(execFile)(process.execPath, [program, ...args])
            return stdout
          }),
        /** Starts a command that runs until its scope closes. */
        start: (...args: ReadonlyArray<string>) =>
          Effect.acquireRelease(
            Effect.sync(() => {
              const child = spawn(process.execPath, [program, ...args], { stdio: "pipe" })
              const said: Array<string> = []
              const conditions = makeConditions()
              for (const output of [child.stdout, child.stderr])
                createInterface(output).on("line", (line) => {
                  said.push(line)
                  conditions.changed()
                })
              const exited = once(child, "close")
              return {
                /** Waits for a line that contains a text. */
                says: (text: string) =>
                  conditions.until(() => said.some((line) => line.includes(text))),
                /** Asks it to stop, and returns its exit code. */
                stop: Effect.promise(async () => {
                  child.kill("SIGTERM")
                  const [code] = await exited
                  return code
                })
              }
            }),
            ({ stop }) => stop
          )
      }
    })
  )
