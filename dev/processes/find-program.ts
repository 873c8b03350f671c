import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import path from 'node:path';
import { StartFailure } from '../failure.js';

/** Returns the full path of a program on the PATH; undefined if it is missing. */
export async function findProgram(name: string): Promise<string | undefined> {
  const file = process.platform === 'win32' ? `${name}.exe` : name;
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    if (folder !== '' && (await isExecutable(path.join(folder, file))))
      return path.join(folder, file);
  }
  return undefined;
}

/** A program that a variable may set. */
export interface NamedProgram {
  readonly variable: string;
  /** The variable's value. */
  readonly file: string | undefined;
}

/** Returns the path of a program set by a variable. @throws StartFailure if the file is not a program. */
export async function programNamed({ file, variable }: NamedProgram): Promise<string | undefined> {
  if (file === undefined) return undefined;
  if (await isExecutable(file)) return path.resolve(file);
  throw new StartFailure(
    `${variable} is ${file}, which is not an executable program: set it to one.`,
  );
}

export async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EACCES' || code === 'ENOTDIR') return false;
    throw error;
  }
}
