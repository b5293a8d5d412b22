//! The harness: everything a claim in `tests/` needs to drive the real binaries, and nothing of the product itself.
//!
//! * [`machine`]: a user of one test: temporary home, short socket paths, an environment mark; proves at its end that
//!   no process and no stray file is left.
//! * [`daemon`]: the real `agentd`, started, killed, restarted; [`binaries`] builds it first.
//! * [`client`]: a client on the wire (both codecs); [`ctl`] and [`pty`] run the real `agentctl` without and with a
//!   terminal.
//! * [`model_server`]: a Messages API server that plays scripts and refuses what the real one refuses.
//! * [`corpus`]: the behaviour corpora of bash and the editor, played through daemon and model server.
//! * [`scene`]: all of these at once, for a claim about one session; [`soak`]: random kills over several, with the
//!   [`random`] numbers of a printed seed.
//! * [`service`]: agentd as a unit of a real systemd, on a machine of its own.
//! * [`processes`], [`wait`]: looking at `/proc`, and waiting with a deadline where no event exists.
//!
//! Everything is synchronous but the inside of the model server: a claim reads from top to bottom.

pub mod binaries;
pub mod client;
pub mod corpus;
pub mod ctl;
pub mod daemon;
pub mod delivery;
pub mod machine;
pub mod model_server;
pub mod processes;
pub mod pty;
pub mod random;
pub mod scene;
pub mod service;
pub mod soak;
pub mod tmux;
pub mod wait;
