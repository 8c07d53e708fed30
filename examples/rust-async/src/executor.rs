// SPDX-License-Identifier: MIT
//! A small executor: some threads that poll tasks, and a clock that the program drives. It knows nothing of OCaml.
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const THREADS: usize = 3;

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Task {
    work: Mutex<Option<Work>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        EXECUTOR.ready.lock().unwrap().push_back(self);
        EXECUTOR.some.notify_one();
    }
}

struct Executor {
    ready: Mutex<VecDeque<Arc<Task>>>,
    some: Condvar,
}

static EXECUTOR: LazyLock<Executor> = LazyLock::new(|| {
    for _ in 0..THREADS {
        std::thread::spawn(run);
    }
    Executor { ready: Mutex::default(), some: Condvar::new() }
});

fn run() {
    loop {
        let ready = EXECUTOR.ready.lock().unwrap();
        let task = EXECUTOR.some.wait_while(ready, |ready| ready.is_empty()).unwrap().pop_front();
        let Some(task) = task else { continue };
        let waker = Waker::from(task.clone());
        let mut place = task.work.lock().unwrap();
        if let Some(work) = place.as_mut() {
            if work.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                *place = None;
            }
        }
    }
}

/// Runs a task on one of the threads.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    Arc::new(Task { work: Mutex::new(Some(Box::pin(work))) }).wake();
}

/// When a sleeper is to be woken; the earliest is the greatest.
struct Alarm(Duration, Waker);
impl PartialEq for Alarm {
    fn eq(&self, other: &Alarm) -> bool {
        self.0 == other.0
    }
}
impl Eq for Alarm {}
impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Alarm) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Alarm {
    fn cmp(&self, other: &Alarm) -> std::cmp::Ordering {
        other.0.cmp(&self.0)
    }
}

struct Clock {
    now: Duration,
    alarms: BinaryHeap<Alarm>,
}

static CLOCK: Mutex<Clock> = Mutex::new(Clock { now: Duration::ZERO, alarms: BinaryHeap::new() });

/// Lets time pass: wakes the sleepers whose time is over.
pub fn pass(time: Duration) {
    let mut clock = CLOCK.lock().unwrap();
    clock.now += time;
    while clock.alarms.peek().is_some_and(|Alarm(when, _)| *when <= clock.now) {
        clock.alarms.pop().into_iter().for_each(|Alarm(_, waker)| waker.wake());
    }
}

/// How many tasks sleep.
pub fn sleepers() -> usize {
    CLOCK.lock().unwrap().alarms.len()
}

/// Completes when the time is over.
pub struct Sleep(Duration);

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut clock = CLOCK.lock().unwrap();
        if clock.now >= self.0 {
            return Poll::Ready(());
        }
        clock.alarms.push(Alarm(self.0, context.waker().clone()));
        Poll::Pending
    }
}

/// Waits without a thread.
pub fn sleep(time: Duration) -> Sleep {
    Sleep(CLOCK.lock().unwrap().now + time)
}
