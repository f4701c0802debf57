/** The files were written by a newer version of Petrel. */
export class NewerFiles extends Error {
  constructor(directory: string) {
    super(
      `${directory} was written by a newer version of Petrel: use that one, or give another directory (\`petrel console --data\`)`
    )
  }
}

/** The files were written by an older version of Petrel. */
export class OlderFiles extends Error {
  constructor(directory: string) {
    super(`${directory} was written by an older version of Petrel`)
  }
}

/** Another projection writes the same files. */
export class OtherWriter extends Error {
  constructor(directory: string) {
    super(
      `another console keeps its delivery log in ${directory}: give each a directory of its own (\`petrel console --data\`), or stop the other one, and this one continues`
    )
  }
}

/** The files are not there any more. */
export class RemovedFiles extends Error {
  constructor(directory: string) {
    super(`files in ${directory} were removed while the delivery log had them open`)
  }
}

/** The history is not the one that the files were made from. */
export class OtherHistory extends Error {
  constructor(directory: string) {
    super(`the history is not the one that ${directory} was made from`)
  }
}

/** The files are of another installation, and stay as they are. */
export class OtherInstallation extends Error {
  constructor(directory: string, rows: number) {
    super(
      `${directory} has ${rows} rows of another installation, and is left as it is: name that installation (\`petrel console\` with \`--nats\` and \`--prefix\`), give this one a directory of its own (\`petrel console --data\`), or drop these rows (\`petrel console --replace-log\`)`
    )
  }
}

/** SQLite's codes for a file that is broken or no database. */
const brokenCodes: ReadonlySet<number> = new Set([11, 26])
const fullCode = 13
const busyCode = 5

const codeOf = (error: unknown): number | undefined => {
  const { errcode }: { errcode?: unknown } = Object(error)
  return typeof errcode === "number" ? errcode & 0xff : undefined
}

/** True if somebody else has locked a file. */
export const isBusy = (error: unknown): boolean => codeOf(error) === busyCode

/** True if the files have to be removed and made again. */
export const isUseless = (error: unknown): boolean =>
  isBroken(error) ||
  error instanceof OtherHistory ||
  error instanceof OlderFiles ||
  error instanceof RemovedFiles

/** True if a file is damaged. */
export const isBroken = (error: unknown): boolean =>
  brokenCodes.has(codeOf(error) ?? 0) || error instanceof BrokenFiles

/** The files contradict each other: a power cut took the end of one. */
export class BrokenFiles extends Error {
  constructor(directory: string) {
    super(`a file in ${directory} has lost its end`)
  }
}

/** Returns the sentence for what keeps the projection from going on. */
export const problemOf = (error: unknown, directory: string): string => {
  if (error instanceof NewerFiles || error instanceof OtherWriter) return error.message
  if (error instanceof OtherHistory || error instanceof OlderFiles) return error.message
  if (error instanceof RemovedFiles || error instanceof OtherInstallation) return error.message
  if (codeOf(error) === fullCode)
    return `no space is left for ${directory}: free some, or keep less (\`petrel console --max-bytes\`)`
  if (isBroken(error)) return `a file in ${directory} is damaged`
  return `the files in ${directory} cannot be written (${error instanceof Error ? error.message : String(error)})`
}
