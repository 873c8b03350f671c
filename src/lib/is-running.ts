/** Reports whether a process of this user has the id. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false; // or the id now belongs to another user's process
  }
}
