import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** Clock ticks a second in `/proc`: the same on every Linux that Node runs on. */
const TICKS = 100;

/** Resource use of a process and all its descendants since its start. */
export interface Usage {
  /** Memory in bytes. On Linux shared pages count proportionally (PSS), elsewhere in each process (RSS). */
  readonly memory: number;
  /** Seconds of one core, including ended children. */
  readonly cpu: number;
}

interface Process extends Usage {
  readonly pid: number;
  readonly parent: number;
}

/** Returns the use of each process tree. A process that is the root of another given tree counts there only. */
export async function usageOf(roots: Readonly<Record<string, number>>) {
  const all = process.platform === 'linux' ? await fromProc() : await fromPs();
  const others = new Set(Object.values(roots));
  const tree = (pid: number): Process[] => [
    ...all.filter((each) => each.pid === pid),
    ...all
      .filter((each) => each.parent === pid && !others.has(each.pid))
      .flatMap((each) => tree(each.pid)),
  ];
  const usages: Record<string, Usage> = {};
  for (const [name, pid] of Object.entries(roots)) {
    const processes = tree(pid);
    usages[name] = {
      memory: processes.reduce((sum, each) => sum + each.memory, 0),
      cpu: processes.reduce((sum, each) => sum + each.cpu, 0),
    };
  }
  return usages;
}

async function fromProc(): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const read = pids.map(async (pid): Promise<Process[]> => {
    try {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
      const memory = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
      // The name in parentheses may contain spaces: parse after its end. Field 1 is ppid, 11 to 14 are
      // times.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
      const kilobytes = Number(/^Pss:\s+(\d+)/m.exec(memory)?.[1] ?? 0);
      return [
        {
          pid: Number(pid),
          parent: Number(fields[1]),
          memory: kilobytes * 1024,
          cpu: ticks / TICKS,
        },
      ];
    } catch {
      return []; // the process has ended or belongs to another user
    }
  });
  return (await Promise.all(read)).flat();
}

async function fromPs(): Promise<Process[]> {
  const args = ['-axo', 'pid=,ppid=,rss=,time='];
  const { stdout } = await promisify(execFile)('ps', args, { timeout: 10_000 });
  return stdout
    .trim()
    .split('\n')
    .map((line) => {
      const [pid, parent, kilobytes, time = ''] = line.trim().split(/\s+/);
      const cpu = time.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
      return { pid: Number(pid), parent: Number(parent), memory: Number(kilobytes) * 1024, cpu };
    });
}
