import { execFileSync } from "node:child_process"

/**
 * Returns the commit of the repository that a folder is in, and its day, as in `aec3ba0, 2026-11-24`, and whether files
 * differ from it; undefined outside of a repository.
 */
export const revisionOf = (folder: string): string | undefined => {
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", args, {
      cwd: folder,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"]
    }).trim()
  try {
    const commit = git("log", "-1", "--format=%h, %cs")
    return git("status", "--porcelain", "--", ":/src", ":/package-lock.json") === ""
      ? commit
      : `${commit}, changed`
  } catch {
    return undefined
  }
}
