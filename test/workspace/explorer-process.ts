// A process that serves a workspace and repeats `write` or `sync` until it is killed; it prints a line
// after each.
import { Workspace } from '../../src/workspace/workspace.js';
import { contentOf } from './numbered-content.js';

const [path = '', views = '', deed] = process.argv.slice(2);
const workspace = new Workspace({ path, views });
for (let number = 1; ; number += 1) {
  await workspace.write('file.txt', contentOf(number));
  if (deed === 'sync') await workspace.gitSync(`sync ${number}`);
  process.stdout.write(`${number}\n`);
}
