import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { projectRoot } from '../../../dev/root.js';

const COMPILER = path.join(projectRoot, 'node_modules/@typescript/native/bin/tsc');

/** The product and the files that its tests need. */
const COPIED = [
  ...['src', 'api', 'workflows', 'activities', 'temporal', 'worker', 'dev', 'test', 'skills'],
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'models.json', 'datafeeds.json'],
];

/** Returns the code blocks of a section of docs/adding.md, in order. */
export async function recipe(section: string): Promise<string[]> {
  const page = await readFile(path.join(projectRoot, 'docs/adding.md'), 'utf8');
  const [, after = ''] = page.split(`\n## ${section}\n`);
  const [text = ''] = after.split('\n## ');
  return [...text.matchAll(/^( *)```ts\n(.*?)^ *```$/gms)].map(([, indent = '', code = '']) =>
    code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  );
}

/** A copy of the sources in its own folder, to which code is added. */
export class CopiedTree {
  private constructor(readonly folder: string) {}

  static async make(): Promise<CopiedTree> {
    const folder = await mkdtemp(path.join(tmpdir(), 'aps-adding-'));
    for (const each of COPIED) {
      const histories = (file: string) => path.basename(file) !== 'histories';
      await cp(path.join(projectRoot, each), path.join(folder, each), {
        recursive: true,
        filter: histories,
      });
    }
    // Links the packages one by one: `.cache` belongs to the original tree.
    const libraries = path.join(folder, 'node_modules');
    await mkdir(libraries);
    const names = await readdir(path.join(projectRoot, 'node_modules'));
    for (const name of names.filter((each) => each !== '.cache')) {
      await symlink(path.join(projectRoot, 'node_modules', name), path.join(libraries, name));
    }
    return new CopiedTree(folder);
  }

  async write(file: string, text: string): Promise<void> {
    await writeFile(path.join(this.folder, file), text);
  }

  /** Inserts lines before the first line after `from` that begins with `before`. */
  async insert(file: string, lines: string, before: string, from = ''): Promise<void> {
    const content = await readFile(path.join(this.folder, file), 'utf8');
    const start = content.indexOf(from);
    const place = start < 0 ? -1 : content.indexOf(`\n${before}`, start) + 1;
    if (place <= 0) throw new Error(`${file} has no line that begins with: ${before}`);
    await this.write(file, `${content.slice(0, place)}${lines.trimEnd()}\n${content.slice(place)}`);
  }

  /** Compiles these files with all their imports and returns the compiler's output. */
  async compile(files: readonly string[]): Promise<string> {
    const config = path.join(this.folder, 'tsconfig.added.json');
    const compilerOptions = { incremental: false, tsBuildInfoFile: null };
    const added = { extends: './tsconfig.json', compilerOptions, files, include: [] };
    await writeFile(config, JSON.stringify(added));
    const compiler = spawn(process.execPath, [COMPILER, '-p', config], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    compiler.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
    await once(compiler, 'close');
    return said;
  }

  /** Returns the files of these folders that import a module of this name. */
  async importersOf(name: string, folders: readonly string[]): Promise<string[]> {
    const found: string[] = [];
    for (const folder of folders) {
      const names = await readdir(path.join(this.folder, folder), { recursive: true });
      for (const file of names.filter((each) => each.endsWith('.ts'))) {
        const text = await readFile(path.join(this.folder, folder, file), 'utf8');
        if (text.includes(`/${name}.js'`)) found.push(path.join(folder, file));
      }
    }
    return found;
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
